package markov

// outcomes holds where the requests of completed steps may go, and how likely that is: one row for every set of batches
// that can complete at the same instant, shared by all the states in which that set completes.
type outcomes struct {
	fields    []field
	p         [][]float64
	committed []float64 // tokens that one request's step commits on average, by model
	grid      *grid

	delta  []key // what an outcome adds to the waiting counts; ascending within a row
	prob   []float64
	rows   []outcomeRow
	number map[key]int32 // row by batches: a key with nothing but running counts
}

// outcomeRow is one set of batches completing together; its outcomes are delta and prob [first, first + len).
type outcomeRow struct {
	first, len int32
	batch      [maxModels]int32 // requests completing, by model
	tokens     float64          // committed on average
	activity   float64
}

func newOutcomes(fields []field, g *grid, r Routing) *outcomes {
	return &outcomes{
		fields: fields, grid: g, p: r.normalized(), committed: r.committed(),
		delta: []key{{}}, prob: []float64{1}, rows: []outcomeRow{{len: 1}}, number: map[key]int32{{}: 0},
	}
}

// of returns the number of the row for these batches, made if it is new. A row with one more request is the old row
// with that request's destinations added: for each destination the old row shifted, all of them merged.
func (o *outcomes) of(batches key) int32 {
	if r, ok := o.number[batches]; ok {
		return r
	}
	i := 0
	for o.fields[i].runningIn(&batches) == 0 {
		i++
	}
	prev := o.rows[o.of(batches.minus(o.fields[i].pack(0, 1, 0)))]
	row := outcomeRow{first: int32(len(o.delta)), batch: prev.batch, tokens: prev.tokens + o.committed[i]}
	row.batch[i]++
	for j, b := range row.batch {
		if b > 0 {
			row.activity += activityOf(j, o.grid.steps[j][b])
		}
	}
	var at [maxModels]int32 // next outcome of the old row, by destination
	for {
		var least key
		some := false
		for j, p := range o.p[i] {
			if p > 0 && at[j] < prev.len {
				if d := o.shifted(prev, at[j], j); !some || d.less(least) {
					least, some = d, true
				}
			}
		}
		if !some {
			break
		}
		sum := 0.0
		for j, p := range o.p[i] {
			if p > 0 && at[j] < prev.len && o.shifted(prev, at[j], j) == least {
				sum += p * o.prob[prev.first+at[j]]
				at[j]++
			}
		}
		if sum > 0 { // not underflown
			o.delta, o.prob = append(o.delta, least), append(o.prob, sum)
		}
	}
	row.len = int32(len(o.delta)) - row.first
	o.rows = append(o.rows, row)
	id := int32(len(o.rows) - 1)
	o.number[batches] = id
	return id
}

// shifted is outcome x of the row with one more request waiting at model j.
func (o *outcomes) shifted(r outcomeRow, x int32, j int) key {
	return o.delta[r.first+x].plus(o.fields[j].pack(1, 0, 0))
}

func (o *outcomes) bytes() int64 { return int64(len(o.delta))*24 + int64(len(o.rows))*128 }
