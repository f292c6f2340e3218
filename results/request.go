package results

import (
	"fmt"
	"time"

	"github.com/trbench/trbench/engine/clock"
)

// Status is how a request ended.
type Status uint8

const (
	// Finished: every output token was committed.
	Finished Status = iota
	// Cancelled: the client let go before the end. Not the server's failure, and not averaged in either.
	Cancelled
	// Rejected: the server refused to admit it.
	Rejected
	// Failed: an error ended it.
	Failed
)

// statusNames are the words of requests.jsonl, by Status.
var statusNames = [...]string{Finished: "finished", Cancelled: "cancelled", Rejected: "rejected", Failed: "failed"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint8(s))
}

// ParseStatus is the inverse of String.
func ParseStatus(word string) (Status, error) {
	for s, name := range statusNames {
		if word == name {
			return Status(s), nil
		}
	}
	return 0, fmt.Errorf("status %q: want one of %q", word, statusNames)
}

// Request is one request that left the system, as a simulator or an engine recorded it.
//
// Invariant: OutputTokens == 0 leaves First, Last and MaxITL zero; otherwise Arrival <= First <= Last.
type Request struct {
	ID      int32         // position in the workload's list: the same in every system that runs the list
	Arrival clock.Instant // scheduled arrival, which is what latencies count from
	Sent    clock.Instant // when the client really sent it; later than Arrival where the client fell behind
	First   clock.Instant // first committed token
	Last    clock.Instant // last committed token

	PromptTokens int32
	OutputTokens int32 // committed tokens; dropped drafts are not in it
	LargeTokens  int32 // of which a model other than the smallest wrote
	Hops         int32 // changes of model

	// Agreement is the share of the output tokens that the large model wrote, or would have written in their place: its
	// likeliest token there is the same. Null where nobody knows.
	Agreement Float
	// NLL is the mean of -ln p of the reference's tokens, nats a token: p under the model that wrote the position, given the
	// reference up to there. Of a draft that was kept, that is the model that drafted it. Null where there is no reference.
	NLL Float

	MaxITL time.Duration // longest gap between two tokens; 0 below two tokens

	Status Status
	Warmup bool   // measured by nobody: it only brings the system to its working point
	Error  string // what went wrong; empty when finished
	Text   string // the output, where there is one and it was asked for
}

// TTFT is the time from the scheduled arrival to the first committed token; false where there is no token.
func (r *Request) TTFT() (time.Duration, bool) {
	return r.First.Sub(r.Arrival), r.OutputTokens > 0
}

// TTFTFromSend is the time from sending to the first committed token: TTFT less what the client was late by.
func (r *Request) TTFTFromSend() (time.Duration, bool) {
	return r.First.Sub(r.Sent), r.OutputTokens > 0
}

// TPOT is the mean time of an output token after the first, (last - first) / (n - 1), in milliseconds and rounded once;
// false for n <= 1, where it is undefined.
func (r *Request) TPOT() (ms float64, ok bool) {
	if r.OutputTokens <= 1 {
		return 0, false
	}
	return float64(r.Last.Sub(r.First)) / float64(int64(r.OutputTokens-1)*1e6), true
}

// E2E is the time from the scheduled arrival to the last committed token; false where there is no token.
func (r *Request) E2E() (time.Duration, bool) {
	return r.Last.Sub(r.Arrival), r.OutputTokens > 0
}

// Millis returns d in milliseconds, the nearest float64.
func Millis(d time.Duration) float64 { return float64(d) / 1e6 }
