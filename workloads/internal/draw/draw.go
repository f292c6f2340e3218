// Package draw makes random numbers that depend on what they are for and not on what was drawn before: each is a hash
// of a seed, a purpose, an index and a position. So a request's draws stay the same when others are added or removed.
package draw

import "math"

// Purpose keeps the streams of one seed apart.
type Purpose uint64

const (
	Choice Purpose = iota + 1 // which requests of a workload are replayed
	Gaps                      // times between arrivals
)

// Stream is the sequence of draws for one seed, purpose and index: splitmix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014), started at a hash of the three.
type Stream struct{ state uint64 }

// golden is 2^64 over the golden ratio, odd: splitmix64's increment.
const golden = 0x9e3779b97f4a7c15

// New starts a stream.
func New(seed uint64, p Purpose, index uint64) Stream {
	return Stream{mix(mix(mix(seed+golden)+uint64(p)*golden) + index*golden)}
}

// mix is splitmix64's finaliser: a bijection that spreads every bit over all.
func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Uint64 returns the next 64 bits.
func (s *Stream) Uint64() uint64 {
	s.state += golden
	return mix(s.state)
}

// Float64 returns the next number in (0, 1): never 0, so that its logarithm is finite, and never 1.
func (s *Stream) Float64() float64 { return (float64(s.Uint64()>>11) + .5) / (1 << 53) }

// Below returns the next number in [0, n), all equally likely; n must be positive.
func (s *Stream) Below(n int) int {
	bound := uint64(n)
	for {
		v := s.Uint64()
		if r := v % bound; v-r <= -bound { // else v is in the last, unfinished block of n
			return int(r)
		}
	}
}

// Exponential returns the next number of the exponential distribution with mean 1, by inversion: one draw each.
func (s *Stream) Exponential() float64 { return -math.Log(s.Float64()) }

// Normal returns the next number of the standard normal distribution, by Box and Muller's transform: two draws each.
func (s *Stream) Normal() float64 {
	r := math.Sqrt(2 * s.Exponential())
	return r * math.Cos(2*math.Pi*s.Float64())
}

// Gamma returns the next number of the gamma distribution with the given shape and scale 1 (mean = shape): Marsaglia
// and Tsang's method ("A simple method for generating gamma variables", 2000); a shape below 1 is drawn as shape + 1
// and brought down by a power of a uniform number.
func (s *Stream) Gamma(shape float64) float64 {
	if shape < 1 {
		u := s.Float64()
		return s.Gamma(shape+1) * math.Exp(math.Log(u)/shape)
	}
	d := shape - 1./3
	c := 1 / math.Sqrt(9*d)
	for {
		x := s.Normal()
		v := 1 + float64(c*x)
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(s.Float64()) < float64(.5*x*x)+float64(d*(1-v+math.Log(v))) {
			return d * v
		}
	}
}
