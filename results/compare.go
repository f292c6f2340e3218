package results

// Comparisons sets every TokenRouter point against the points of the other systems at the same working point: same
// workload, pair, algorithm, concurrency and arrivals, and the same value of every swept key that both have. A system
// that runs no algorithm (large-only) is compared under each. The order is that of points.
func Comparisons(points []Point) []Comparison {
	comparisons := []Comparison{}
	for i := range points {
		of := &points[i]
		if of.System != TokenRouter {
			continue
		}
		for j := range points {
			against := &points[j]
			if against.System == TokenRouter || !sameWork(of, against) {
				continue
			}
			comparisons = append(comparisons, Compare(of, against))
		}
	}
	return comparisons
}

// Compare sets the point of against against.
func Compare(of, against *Point) Comparison {
	return Comparison{
		Of: of.System, Against: against.System,
		Algorithm: of.Algorithm, Workload: of.Workload, Concurrency: of.Concurrency,
		ThroughputRatio: Ratio(of.OutputTokS, against.OutputTokS),
		TPOTP99Change:   Change(of.TPOT.Percentile(99), against.TPOT.Percentile(99)),
		TTFTP99Change:   Change(of.TTFT.Percentile(99), against.TTFT.Percentile(99)),
		Pair:            of.Pair, Arrival: of.Arrival, Axes: of.Axes,
	}
}

// sameWork says that two points differ in the system alone.
func sameWork(of, against *Point) bool {
	return of.Workload == against.Workload && of.Pair == against.Pair &&
		(of.Algorithm == against.Algorithm || against.Algorithm == "") &&
		of.Concurrency == against.Concurrency && of.Arrival == against.Arrival &&
		sameAxes(of.Axes, against.Axes)
}

// sameAxes says that the keys which both have agree.
func sameAxes(a, b Axes) bool {
	for _, x := range a {
		for _, y := range b {
			if x.Key == y.Key && x.Value != y.Value {
				return false
			}
		}
	}
	return true
}
