// Package metrics turns the records of requests into the figures of a point. Every definition is here, once.
//
// Read collector.go (what is kept while a run lasts), then summarise.go (the definitions), percentile.go, histogram.go
// and slo.go.
package metrics
