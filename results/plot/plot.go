// Package plot draws a summary: output and tail latency against concurrency, the distribution of the time to first
// token, output against the speed that one user sees, and the headline figure that holds the first two for every
// workload. It computes no figure; what has no value is left out, and said to be.
//
// Read figures.go (what is drawn), then panel.go (lines and bars), axis.go (scales and ticks), figure.go (layout, SVG
// and PNG) and style.go (colours and fonts). term.go draws bars of text.
//
// The same input gives the same bytes: no time, no random number, no map order.
package plot
