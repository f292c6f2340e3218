package sim

import (
	"math"
	"strings"
	"testing"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/models/signal"
	"github.com/trbench/trbench/results"
)

// Two texts of four and two tokens, of which the large model would have written the first and the last of each.
const judged = `problem,pos,token,s_top1,l_top1,s_entropy,s_maxprob,s_margin,l_entropy,accept_prob,s_nll,l_nll
0,10,5,5,5,0.5,0.9,0.8,0.2,1,0.1,0.05
0,11,6,7,6,2.5,0.3,0.1,1.5,1,2,0.7
0,12,6,7,6,1.0,0.3,0.1,1.5,1,1.5,0.5
0,13,6,6,6,0.1,0.3,0.1,1.5,1,0.25,0.125
1,4,1,1,1,3,0.6,0.3,1,1,0.5,1
1,5,1,1,1,0.5,0.6,0.3,1,1,4,3
`

// A request's agreement and NLL are those of its tokens, each by the model that wrote it: the drafts that speculative
// decoding keeps are the small model's. They are the same whatever carries the tokens.
func TestQualityOfARequest(t *testing.T) {
	trace, err := signal.ReadTrace("t.csv", strings.NewReader(judged))
	if err != nil {
		t.Fatal(err)
	}
	type quality struct{ agreement, nll float64 }
	for _, c := range []struct {
		algorithm string
		options   route.Options
		want      [2]quality
	}{
		// The small model is unsure of token 1 of the first text and token 0 of the second.
		{"entropy", route.Options{Threshold: 2}, [2]quality{{.75, (.1 + .7 + 1.5 + .25) / 4}, {1, (1. + 4) / 2}}},
		// Both drafts of the first pass are kept; the third token is the large model's own, and so is the last one, which
		// needs no draft.
		{"specdec", route.Options{Draft: 2}, [2]quality{{.75, (.1 + 2 + .5 + .125) / 4}, {1, (.5 + 3) / 2}}},
		{"me", route.Options{Weights: []float64{1, 0}}, [2]quality{{.5, (.1 + 2 + 1.5 + .25) / 4}, {1, (.5 + 4) / 2}}},
	} {
		c.options.Models = 2
		for _, topology := range []Topology{TokenRouter, RPC} {
			r, err := route.New(c.algorithm, c.options)
			if err != nil {
				t.Fatal(err)
			}
			cfg := replayed(t, trace, r)
			cfg.Topology = topology
			var got [2]quality
			cfg.Ended = func(r *results.Request) {
				got[r.ID] = quality{r.Agreement.Or(math.NaN()), r.NLL.Or(math.NaN())}
			}
			o := mustRun(t, cfg)
			agreed := 0.
			for i, want := range c.want {
				if math.Abs(got[i].agreement-want.agreement) > 1e-12 || math.Abs(got[i].nll-want.nll) > 1e-12 {
					t.Errorf("%s, topology %v, request %d: %+v, want %+v", c.algorithm, topology, i, got[i], want)
				}
				_, n := trace.Problem(i)
				agreed += got[i].agreement * float64(n)
			}
			if o.Quality.Judged != 6 || math.Abs(float64(o.Quality.Agreed)-agreed) > 1e-9 {
				t.Errorf("%s: %+v, the requests say %v", c.algorithm, o.Quality, agreed)
			}
		}
	}
}
