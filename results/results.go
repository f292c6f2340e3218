// Package results is what a run leaves behind: the record of one request, the summary of a whole run, and the folder
// that holds both. It measures nothing and draws nothing: metrics computes a point from records, table and plot show a
// summary.
//
// Read request.go (one request and its latencies), then summary.go (summary.json), manifest.go (run.json) and
// folder.go (the life of an output folder; part.go writes its requests, recover.go takes it up after a kill, load.go
// reads it). jsonl.go is the codec of requests.jsonl, encode.go and decode.go that of summary.json; compare.go pairs
// the points of two systems, and group.go finds those that a table or a panel shows together.
package results
