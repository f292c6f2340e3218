// Package plot draws a summary: output and tail latency against concurrency, the distribution of the time to first
// token, output against the speed that one user sees, and the headline figure that holds the first two for every
// workload. It computes no figure; what has no value is left out, and said to be.
//
// Read figures.go (which figures there are), then the file of each: headline.go, sweep.go, metric.go (output and tail
// latency of one workload), speed.go, cdf.go. They are made of panels (panel.go: lines or bars) on axes (axis.go:
// scales and ticks); figure.go lays them out and writes SVG and PNG, style.go has the colours and fonts, names.go the
// titles and file names. term.go draws bars of text.
//
// The same input gives the same bytes: no time, no random number, no map order.
package plot
