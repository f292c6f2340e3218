package arrival

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/trbench/trbench/internal/suggest"
)

// usage is what each kind looks like, and an example of it.
func usage(k Kind) (form, example string) {
	switch k {
	case Closed:
		return "closed", "closed"
	case Poisson:
		return "poisson:RATE", "poisson:8"
	case Gamma:
		return "gamma:RATE,cv=C", "gamma:8,cv=2"
	case Constant:
		return "constant:RATE", "constant:8"
	case Ramp:
		return "ramp:LO..HI,DURATION", "ramp:1..8,60s"
	default:
		return "trace[:scale]", "trace:2, twice as fast"
	}
}

// Parse reads closed, poisson:RATE, gamma:RATE,cv=C, constant:RATE, ramp:LO..HI,DURATION or trace[:SCALE]. Rates are
// requests per second. Case and blanks around a part don't matter.
func Parse(spec string) (Spec, error) {
	name, rest, colon := strings.Cut(spec, ":")
	kind := Kind(strings.ToLower(strings.TrimSpace(name)))
	s := Spec{Kind: kind}
	var err error
	switch kind {
	case Closed:
		if colon {
			err = errors.New("found a colon, wanted none")
		}
	case Poisson, Constant:
		s.Rate, err = float("rate", rest)
	case Gamma:
		err = s.gamma(rest)
	case Ramp:
		err = s.ramp(rest)
	case Trace:
		s.Scale = 1
		if colon {
			s.Scale, err = float("scale", rest)
		}
	default:
		return Spec{}, unknownKind(spec, name)
	}
	if err == nil {
		err = s.valid()
	}
	if err != nil {
		form, example := usage(kind)
		return Spec{}, fmt.Errorf("arrival %q: %w: %s (for example %s)", spec, err, form, example)
	}
	return s, nil
}

func unknownKind(spec, name string) error {
	var known, forms []string
	for _, k := range Kinds() {
		form, _ := usage(k)
		known, forms = append(known, string(k)), append(forms, form)
	}
	hint := ";"
	if near, ok := suggest.Nearest(strings.TrimSpace(name), known); ok {
		_, example := usage(Kind(near))
		hint = fmt.Sprintf("; did you mean %s (for example %s)?", near, example)
	}
	return fmt.Errorf("arrival %q: unknown kind %q%s wanted one of %s", spec, name, hint, strings.Join(forms, ", "))
}

func (s *Spec) gamma(rest string) (err error) {
	rate, cv, comma := strings.Cut(rest, ",")
	if s.Rate, err = float("rate", rate); err != nil {
		return err
	}
	key, value, equals := strings.Cut(cv, "=")
	if !comma || !equals || !strings.EqualFold(strings.TrimSpace(key), "cv") {
		return fmt.Errorf("found %q behind the rate, wanted \",cv=C\"", rest[len(rate):])
	}
	s.CV, err = float("cv", value)
	return err
}

func (s *Spec) ramp(rest string) (err error) {
	rates, over, comma := strings.Cut(rest, ",")
	if !comma {
		return fmt.Errorf("found no duration in %q", rest)
	}
	lo, hi, dots := strings.Cut(rates, "..")
	if !dots {
		return fmt.Errorf("found %q, wanted two rates with .. between them", rates)
	}
	if s.From, err = float("start rate", lo); err != nil {
		return err
	}
	s.From += 0 // -0 becomes 0
	if s.To, err = float("end rate", hi); err != nil {
		return err
	}
	if s.Over, err = time.ParseDuration(strings.TrimSpace(over)); err != nil {
		return fmt.Errorf("found the duration %q, wanted a number with a unit", over)
	}
	return nil
}

// float reads a number; whether it is in bounds is valid's business, NaN included.
func float(what, s string) (float64, error) {
	s = strings.TrimSpace(s)
	if s == "" {
		return 0, fmt.Errorf("found no %s", what)
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, fmt.Errorf("found the %s %q, wanted a number", what, s)
	}
	return f, nil
}
