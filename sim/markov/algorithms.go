package markov

// R2R is the small-first algorithm with draft-and-replace: a token is handed to model 1 with probability p, its draft
// dropped; model 1 computes one token and hands back. Source: paper, appendix D.
func R2R(p float64) Routing {
	return Routing{
		P: [][]float64{{1 - p, p}, {1, 0}},
		C: [][]float64{{1, 0}, {1, 0}},
	}
}

// CITER has R2R's form: p is the probability that the router's score falls below tau.
func CITER(p float64) Routing { return R2R(p) }

// CoLLM has R2R's form: p is the probability that the deferral probability exceeds eta.
func CoLLM(p float64) Routing { return R2R(p) }

// RStitch switches to model 1 with probability p a token, its draft dropped, and stays there until it returns with
// probability q a token; model 1 keeps the token either way. Source: paper, table of algorithms.
func RStitch(p, q float64) Routing {
	return Routing{
		P: [][]float64{{1 - p, p}, {q, 1 - q}},
		C: [][]float64{{1, 0}, {1, 1}},
	}
}

// ME draws the model of every token by weight, whatever the last one was, and keeps every token. The weights are
// divided by their sum; the paper's are .5, .3, .2.
func ME(weights ...float64) Routing {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	n := len(weights)
	r := Routing{P: make([][]float64, n), C: make([][]float64, n)}
	for i := range n {
		r.P[i] = make([]float64, n)
		r.C[i] = make([]float64, n)
		for j, w := range weights {
			r.P[i][j] = w / sum
			r.C[i][j] = 1
		}
	}
	return r
}
