// Package results is what a run leaves behind: the record of one request, the summary of a whole run, and the folder
// that holds both. It measures nothing and draws nothing: metrics computes a point from records, table and plot show a
// summary.
//
// Read request.go (one request and its latencies), then summary.go (summary.json), manifest.go (run.json) and
// folder.go (the life of an output folder). jsonl.go is the codec of requests.jsonl, compare.go pairs the points of
// two systems.
package results
