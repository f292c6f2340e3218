// Package signal makes what a router sees per token in a simulation: a score whose rule fires at a wanted rate
// (independent over the tokens, in bursts, or in phases), the fate of drafted tokens, or all of it as recorded from a
// real pair of models.
//
// Every draw is counter-based: it depends on (seed, request, position, model, purpose) and on nothing else, so two
// systems, two policies and two engines that run the same requests see the same draws, and comparisons are paired.
//
// Read draw.go (the draws), rule.go (what fires), source.go (the models of a signal), report.go (the columns beyond the
// one score), acceptance.go (drafts), then trace.go and replay.go (recorded signals).
package signal

import "github.com/trbench/trbench/engine/step"

// Purpose keeps draws for different questions about the same token apart.
type Purpose uint8

const (
	// Route is the draw behind a router's score.
	Route Purpose = iota
	// Burst is the draw that moves a two-state signal from one position to the next.
	Burst
	// Accepted is the draw that accepts or rejects a drafted token.
	Accepted
	// Agreed is the draw behind the two models' agreement on a token.
	Agreed
	// Asked is the draw behind the score of a prompt.
	Asked
	// Programmed is a draw that a routing program asks for.
	Programmed
)

const weyl = 0x9e3779b97f4a7c15 // 2^64 / golden ratio, odd: the increment of splitmix64

// mix is the finaliser of splitmix64 (Steele, Lea, Flood 2014; constants: Stafford's variant 13).
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Key is the stream of one request under a seed.
func Key(seed uint64, id step.RequestID) uint64 {
	return mix(mix(seed+weyl) + (uint64(uint32(id))+1)*0xd1342543de82ef95)
}

// Float64 is stream key's draw for the token at position pos of the sequence, sampled by model m, for a purpose:
// uniform in [0, 1), 53 bits.
func Float64(key uint64, pos int32, m step.ModelID, p Purpose) float64 {
	n := uint64(uint32(pos))<<16 | uint64(m)<<8 | uint64(p)
	return float64(mix(key+(n+1)*weyl)>>11) * 0x1p-53
}
