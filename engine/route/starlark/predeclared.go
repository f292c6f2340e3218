package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// predeclared is what a file sees beside Starlark's own: the models, smallest first, and rule.
func predeclared(models int) star.StringDict {
	return star.StringDict{
		"small":  star.MakeInt(0),
		"large":  star.MakeInt(models - 1),
		"models": star.MakeInt(models),
		"rule":   star.NewBuiltin("rule", newRule),
	}
}

// scores are the scores that a rule may be on, each with the range that a simulation draws it from.
var scores = map[string]struct {
	score  signal.Score
	lo, hi float64
}{
	"score":            {signal.External, 0, 1},
	"entropy":          {signal.Entropy, 0, 12},
	"normalised":       {signal.Normalised, 0, 1},
	"confidence":       {signal.Confidence, 0, 1},
	"margin":           {signal.Margin, 0, 1},
	"draft_gain":       {signal.DraftGain, -1, 1},
	"draft_gain_ratio": {signal.DraftGainRatio, -2, 2},
	"draft_loss":       {signal.DraftLoss, 0, 20},
	"query":            {signal.Prompt, 0, 1},
}

// newRule is rule(score, above = x | below = x, lo = 0, hi = 1, name = ""): when the program acts.
func newRule(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	var score, name string
	var above, below, lo, hi optional
	err := star.UnpackArgs(b.Name(), args, kwargs,
		"score", &score, "above?", &above, "below?", &below, "lo?", &lo, "hi?", &hi, "name?", &name)
	if err != nil {
		return nil, err
	}
	s, ok := scores[score]
	if !ok {
		return nil, fmt.Errorf("rule: no score %q: want score, entropy, normalised, confidence, margin, draft_gain, "+
			"draft_gain_ratio, draft_loss or query", score)
	}
	if above.set == below.set {
		return nil, fmt.Errorf("rule: want one of above and below")
	}
	r := signal.Rule{Name: score, Score: s.score, Lo: lo.or(s.lo), Hi: hi.or(s.hi), Above: above.set, Threshold: above.x}
	if below.set {
		r.Threshold = below.x
	}
	if name != "" {
		r.Name = name
	}
	if !(r.Lo < r.Threshold && r.Threshold < r.Hi) {
		return nil, fmt.Errorf("rule: threshold %g of %s must lie inside (%g, %g)", r.Threshold, r.Name, r.Lo, r.Hi)
	}
	return &ruleValue{r}, nil
}

// optional is a number that may be missing.
type optional struct {
	x   float64
	set bool
}

// Unpack implements star.Unpacker.
func (o *optional) Unpack(v star.Value) error {
	if v == star.None {
		return nil
	}
	x, ok := star.AsFloat(v)
	if !ok {
		return fmt.Errorf("got %s, want a number", v.Type())
	}
	o.x, o.set = x, true
	return nil
}

func (o optional) or(x float64) float64 {
	if o.set {
		return o.x
	}
	return x
}

// ruleValue is a rule in a file. It never changes.
type ruleValue struct{ rule signal.Rule }

func (r *ruleValue) String() string {
	if r.rule.Above {
		return fmt.Sprintf("rule(%s > %g)", r.rule.Name, r.rule.Threshold)
	}
	return fmt.Sprintf("rule(%s < %g)", r.rule.Name, r.rule.Threshold)
}

// The rest of star.Value.
func (r *ruleValue) Type() string          { return "rule" }
func (r *ruleValue) Freeze()               {}
func (r *ruleValue) Truth() star.Bool      { return true }
func (r *ruleValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: rule") }

// Attr is rule.threshold and rule.fires(token or number).
func (r *ruleValue) Attr(name string) (star.Value, error) {
	switch name {
	case "threshold":
		return star.Float(r.rule.Threshold), nil
	case "fires":
		return firesMethod.BindReceiver(r), nil
	}
	return nil, nil
}

// AttrNames implements star.HasAttrs.
func (r *ruleValue) AttrNames() []string { return []string{"fires", "threshold"} }

var firesMethod = star.NewBuiltin("fires", fires)

// fires is rule.fires(x): whether the program acts on a token, a draft or a number.
func fires(_ *star.Thread, b *star.Builtin, args star.Tuple, kwargs []star.Tuple) (star.Value, error) {
	r := b.Receiver().(*ruleValue)
	if len(args) != 1 || len(kwargs) > 0 {
		return nil, fmt.Errorf("fires: want one argument, a token, a draft or a number")
	}
	switch x := args[0].(type) {
	case *token:
		return star.Bool(x.fires(r.rule)), nil
	case *verdict:
		return star.Bool(x.token.fires(r.rule)), nil
	case *draftValue:
		return star.Bool(draftFires(r.rule, &x.score)), nil
	}
	x, ok := star.AsFloat(args[0])
	if !ok {
		return nil, fmt.Errorf("fires: got %s, want a token, a draft or a number", args[0].Type())
	}
	return star.Bool(r.rule.Fires(x)), nil
}

// draftFires applies a rule to a draft.
func draftFires(r signal.Rule, d *step.DraftScore) bool {
	switch r.Score {
	case signal.DraftGain:
		return r.Fires(d.Gain)
	case signal.DraftGainRatio:
		if limit := r.Threshold * d.Variation; r.Above {
			return d.Gain > limit
		} else {
			return d.Gain < limit
		}
	}
	return r.Fires(d.Loss)
}

// CompareSameType implements star.Comparable: rules are equal where they say the same.
func (r *ruleValue) CompareSameType(op syntax.Token, y star.Value, _ int) (bool, error) {
	same := r.rule == y.(*ruleValue).rule
	switch op {
	case syntax.EQL:
		return same, nil
	case syntax.NEQ:
		return !same, nil
	}
	return false, fmt.Errorf("rules have no order")
}
