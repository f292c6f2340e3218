package latency

import (
	"embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/trbench/trbench/models"
)

//go:embed profiles/*.csv
var profileFiles embed.FS

// Key names an embedded profile.
type Key struct {
	GPU   string // canonical, as in models.GPUs
	Model string // canonical, as in models.Cards
	TP    int
}

func (k Key) String() string { return fmt.Sprintf("%s tp%d on %s", k.Model, k.TP, k.GPU) }

// shelf is the profiles of one GPU.
type shelf struct {
	gpu     string
	version string // of the kernel tables
	load    func() []embedded
}

type embedded struct {
	key     Key
	profile *Profile
}

// shelves parse on first use, each once: some 35 kB of text each.
var shelves = []shelf{
	newShelf("a100", "vLLM 0.14.0"),
	newShelf("h100", "vLLM 0.24.0"),
	newShelf("h200", "vLLM 0.24.0"),
}

func newShelf(gpu, version string) shelf {
	return shelf{gpu, version, sync.OnceValue(func() []embedded {
		decode, prefill := mustRead(gpu+".decode.csv"), mustRead(gpu+".prefill.csv")
		profiles, err := parseProfiles(gpu, decode, prefill)
		if err != nil {
			panic(fmt.Sprintf("embedded profiles of %s: %v", gpu, err))
		}
		return profiles
	})}
}

func mustRead(name string) string {
	text, err := profileFiles.ReadFile("profiles/" + name)
	if err != nil {
		panic(err) // the file is in the binary
	}
	return string(text)
}

// Profiles lists the embedded profiles by GPU, model and TP.
func Profiles() []Key {
	var keys []Key
	for _, s := range shelves {
		for _, e := range s.load() {
			keys = append(keys, e.key)
		}
	}
	return keys
}

// TPs lists the tensor parallelisms tabled for a model on a GPU, increasing; none where it has no table.
func TPs(gpu, model string) []int {
	gpu, model = canonicalGPU(gpu), canonical(model)
	var tps []int
	for _, s := range shelves {
		if s.gpu != gpu {
			continue
		}
		for _, e := range s.load() {
			if e.key.Model == model {
				tps = append(tps, e.key.TP)
			}
		}
	}
	return tps
}

// Lookup returns an embedded profile; names are as in models.LookupGPU and models.Lookup. Where there is none the error
// lists what there is.
func Lookup(gpu, model string, tp int) (*Profile, error) {
	g, err := models.LookupGPU(gpu)
	if err != nil {
		return nil, err
	}
	wanted := Key{g.Name, canonical(model), tp}
	var onGPU []string
	for _, s := range shelves {
		if s.gpu != wanted.GPU {
			continue
		}
		for _, e := range s.load() {
			if e.key == wanted {
				return e.profile, nil
			}
			if !slices.Contains(onGPU, e.key.Model) {
				onGPU = append(onGPU, e.key.Model)
			}
		}
	}
	if _, err := models.Lookup(model); err != nil {
		return nil, err
	}
	if tps := TPs(wanted.GPU, wanted.Model); len(tps) > 0 {
		return nil, fmt.Errorf("no step times for %s: tabled on TP %s", wanted, joinInts(tps))
	}
	return nil, fmt.Errorf("no step times for %s on %s: tabled are %s",
		wanted.Model, wanted.GPU, strings.Join(onGPU, ", "))
}

func canonicalGPU(name string) string {
	if g, err := models.LookupGPU(name); err == nil {
		return g.Name
	}
	return name
}

// The columns before the values.
const (
	decodeColumns  = 4 // model, tp, batch, part
	prefillColumns = 3 // model, tp, part
)

// parseProfiles reads the two tables of a GPU, which list the same profiles in the same order. Each measurement has two
// lines, the step's time and its attention's; a decode grid has a pair of lines for each batch.
func parseProfiles(gpu, decode, prefill string) ([]embedded, error) {
	decodeRows, contexts, err := parseTable(decode, decodeColumns)
	if err != nil {
		return nil, fmt.Errorf("decode: %w", err)
	}
	prefillRows, tokens, err := parseTable(prefill, prefillColumns)
	if err != nil {
		return nil, fmt.Errorf("prefill: %w", err)
	}
	var out []embedded
	for len(prefillRows) > 1 {
		times, attention := prefillRows[0], prefillRows[1]
		prefillRows = prefillRows[2:]
		tp, err := strconv.Atoi(times.labels[1])
		if err != nil {
			return nil, fmt.Errorf("prefill: line %d: tp: %w", times.line, err)
		}
		s := Steps{DecodeGrid{ContextTokens: contexts}, PrefillGrid{tokens, times.values, attention.values}}
		for len(decodeRows) > 1 && slices.Equal(decodeRows[0].labels[:2], times.labels[:2]) {
			batch, err := strconv.Atoi(decodeRows[0].labels[2])
			if err != nil {
				return nil, fmt.Errorf("decode: line %d: batch: %w", decodeRows[0].line, err)
			}
			s.Decode.Batch = append(s.Decode.Batch, batch)
			s.Decode.StepMS = append(s.Decode.StepMS, decodeRows[0].values)
			s.Decode.AttentionMS = append(s.Decode.AttentionMS, decodeRows[1].values)
			decodeRows = decodeRows[2:]
		}
		key := Key{gpu, times.labels[0], tp}
		p, err := NewProfile(key.String(), s)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out = append(out, embedded{key, p})
	}
	if len(decodeRows)+len(prefillRows) > 0 {
		return nil, fmt.Errorf("%d decode and %d prefill lines left over", len(decodeRows), len(prefillRows))
	}
	slices.SortStableFunc(out, func(a, b embedded) int {
		if a.key.Model == b.key.Model {
			return a.key.TP - b.key.TP
		}
		return strings.Compare(a.key.Model, b.key.Model)
	})
	return out, nil
}

// row is one line of an embedded table.
type row struct {
	line   int
	labels []string
	values []float64
}

// parseTable splits a table into rows of labels and values; the header's values are counts. A value may be missing at a
// line's end.
func parseTable(text string, labels int) (rows []row, header []int, err error) {
	for line, rest := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		fields := strings.Split(rest, ",")
		if len(fields) <= labels {
			return nil, nil, fmt.Errorf("line %d: %d columns, wanted more than %d", line+1, len(fields), labels)
		}
		if line == 0 {
			for _, f := range fields[labels:] {
				n, err := strconv.Atoi(f)
				if err != nil {
					return nil, nil, fmt.Errorf("line 1: %w", err)
				}
				header = append(header, n)
			}
			continue
		}
		r := row{line: line + 1, labels: fields[:labels]}
		for _, f := range fields[labels:] {
			if f == "" {
				break
			}
			v, err := strconv.ParseFloat(f, 64)
			if err != nil {
				return nil, nil, fmt.Errorf("line %d: %w", line+1, err)
			}
			r.values = append(r.values, v)
		}
		if part := r.labels[labels-1]; part != []string{"attention_ms", "step_ms"}[line%2] {
			return nil, nil, fmt.Errorf("line %d: part is %q: step_ms and attention_ms take turns", line+1, part)
		}
		rows = append(rows, r)
	}
	return rows, header, nil
}

func joinInts(xs []int) string {
	var s []string
	for _, x := range xs {
		s = append(s, strconv.Itoa(x))
	}
	return strings.Join(s, ", ")
}
