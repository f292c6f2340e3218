package latency

// axis is the increasing coordinates of a grid's rows or columns, at least two of them.
type axis struct {
	at   []float64
	last float64 // the last that was measured
}

// newAxis copies coordinates. A single one is doubled, so that there is a cell to look up: the grid is flat along it.
func newAxis(at []int) axis {
	var a axis
	for _, x := range at {
		a.at = append(a.at, float64(x))
	}
	a.last = a.at[len(a.at)-1]
	if len(a.at) == 1 {
		a.at = append(a.at, a.last+1)
	}
	return a
}

// cell is the index i with at[i] <= x < at[i+1]; the first or last cell where there is none. It searches from a guess:
// steps in a row look alike.
func cell(at []float64, guess int, x float64) int {
	for guess+2 < len(at) && x >= at[guess+1] {
		guess++
	}
	for guess > 0 && x < at[guess] {
		guess--
	}
	return guess
}

func (a *axis) cell(guess int, x float64) int { return cell(a.at, guess, x) }

// fraction is how far into cell i x lies: 0 before the first, above 1 beyond the last.
func (a *axis) fraction(i int, x float64) float64 {
	return max(0, (x-a.at[i])/(a.at[i+1]-a.at[i]))
}

// curve is a piecewise linear function: flat before its first point, and after its last going on with the last slope,
// but never down.
type curve struct {
	x, y, slope []float64 // slope[i] holds from x[i] on; the last holds beyond the end
}

// add appends a point to the right.
func (c *curve) add(x, y float64) {
	c.x, c.y = append(c.x, x), append(c.y, y)
	n := len(c.x)
	if n == 1 {
		c.slope = append(c.slope, 0)
		return
	}
	slope := (y - c.y[n-2]) / (x - c.x[n-2])
	c.slope[n-2] = slope
	c.slope = append(c.slope, max(0, slope))
}

func (c *curve) last() float64 { return c.x[len(c.x)-1] }

// cell is the index of the last point at or before x, or 0, searched from a guess.
func (c *curve) cell(guess int, x float64) int {
	for guess+1 < len(c.x) && x >= c.x[guess+1] {
		guess++
	}
	for guess > 0 && x < c.x[guess] {
		guess--
	}
	return guess
}

// value is the function at x in cell i.
func (c *curve) value(i int, x float64) float64 { return c.y[i] + c.slope[i]*max(0, x-c.x[i]) }
