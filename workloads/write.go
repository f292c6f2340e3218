package workloads

import (
	"bufio"
	"fmt"
	"io"
	"time"
)

// WriteCSV writes the requests to measure in the lengths form, which LoadFile reads: prompt_tokens, output_tokens and,
// where there are arrivals, arrival_s.
func (s *Set) WriteCSV(w io.Writer) error {
	b := bufio.NewWriter(w)
	header := "prompt_tokens,output_tokens\n"
	if s.HasArrivals {
		header = "prompt_tokens,output_tokens,arrival_s\n"
	}
	b.WriteString(header) // bufio keeps the first error for Flush
	for _, r := range s.Requests {
		fmt.Fprintf(b, "%d,%d", r.Prompt, r.Output)
		if s.HasArrivals {
			fmt.Fprintf(b, ",%d.%09d", r.Arrival/time.Second, r.Arrival%time.Second)
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}
