// Package plot draws a summary: output and tail latency against concurrency, the distribution of the time to first
// token, output against the speed that one user sees, and the headline figure that holds the first two for every
// workload. Of a sweep it draws what a choice is worth: output against the delay of batches, output against tail
// latency with the Pareto front, output against agreement with the large model, and maps over two swept numbers. It
// computes no figure; what has no value is left out, and said to be.
//
// Read figures.go (which figures a run has), then the file of each: headline.go, sweep.go, metric.go (output and tail
// latency of one workload), speed.go, cdf.go, switch.go (what a change of model takes, where an engine measured it). tuning.go has those of a sweep that seeks the best: delay.go, pareto.go,
// frontier.go, heatmap.go, knob.go. Figures are made of panels (panel.go: lines or bars; layer.go: points with
// intervals, levels, marks) on axes (axis.go: scales and ticks); figure.go lays them out and writes SVG and PNG,
// style.go has the colours and fonts, shades.go the colour maps, names.go the titles and file names. term.go draws bars
// of text.
//
// The same input gives the same bytes: no time, no random number, no map order.
package plot
