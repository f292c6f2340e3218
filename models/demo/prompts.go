package demo

import "math/rand/v2"

// The form in which the models were trained to see a problem. After Answer they write the steps, "####" and a number,
// and end the text.
const (
	before = "Question: "
	after  = "\nAnswer:"
)

// Prompts returns n prompts, each a word problem in the form that the models were trained on. The problems come from
// templates written for this project: names, things and numbers are drawn, so that they read alike and none is taken
// from a data set. They are distinct while n is at most 20,000.
//
// The same seed gives the same prompts, and the first ones of a longer list are the shorter list.
func Prompts(n int, seed uint64) []string {
	d := &draw{rand.New(rand.NewPCG(seed, promptStream))}
	prompts := make([]string, 0, n)
	seen := make(map[string]bool, n)
	var order []int
	for len(prompts) < n {
		if len(order) == 0 { // each template once before any comes again
			order = d.Perm(len(templates))
		}
		template := templates[order[0]]
		order = order[1:]
		prompt := before + template(d) + after
		for again := 0; seen[prompt] && again < redraws; again++ {
			prompt = before + template(d) + after
		}
		seen[prompt] = true
		prompts = append(prompts, prompt)
	}
	return prompts
}

const (
	promptStream = 0x70726f6d70747301 // of the generator, apart from any other use of the seed
	redraws      = 1_000              // of a problem that was there before, until it may repeat
)

// draw fills templates.
type draw struct{ *rand.Rand }

// between is a whole number from low to high, both included.
func (d *draw) between(low, high int) int { return low + d.IntN(high-low+1) }

// times is a multiple of unit, from low to high times.
func (d *draw) times(unit, low, high int) int { return unit * d.between(low, high) }

// pick is one of list.
func (d *draw) pick(list ...string) string { return list[d.IntN(len(list))] }

// person is somebody in a problem.
type person struct {
	name, they, their string // they: "she"; their: "her"
}

// They is they at the start of a sentence.
func (p person) They() string { return string(p.they[0]-'a'+'A') + p.they[1:] }

var women = []string{"Amara", "Beatriz", "Chloe", "Dalia", "Elena", "Farah", "Greta", "Hana", "Ines", "Julia", "Keiko",
	"Leila", "Mina", "Nora", "Odette", "Priya"}

var men = []string{"Anton", "Bilal", "Carlos", "Dmitri", "Emil", "Felix", "Goran", "Hugo", "Ivan", "Jonas", "Kofi",
	"Lars", "Mateo", "Nikhil", "Oscar", "Pavel"}

func (d *draw) person() person {
	if d.IntN(2) == 0 {
		return person{women[d.IntN(len(women))], "she", "her"}
	}
	return person{men[d.IntN(len(men))], "he", "his"}
}

// pair is two people of different names.
func (d *draw) pair() (person, person) {
	a, b := d.person(), d.person()
	for b.name == a.name {
		b = d.person()
	}
	return a, b
}
