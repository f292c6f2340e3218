package starlark

import (
	"fmt"

	star "go.starlark.net/starlark"

	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

// token is a sampled token in a file.
type token struct {
	route.Token
	probe *probe // nil unless the program is being lowered
	made  int    // probe's step that sampled it
}

func (t *token) String() string        { return fmt.Sprintf("token(pos = %d, model = %d)", t.Pos, t.Model) }
func (t *token) Type() string          { return "token" }
func (t *token) Freeze()               {}
func (t *token) Truth() star.Bool      { return true }
func (t *token) Hash() (uint32, error) { return uint32(t.Pos), nil }

// fires applies a rule on single tokens.
func (t *token) fires(r signal.Rule) bool {
	if t.probe != nil {
		return t.probe.fires(t, r)
	}
	return r.Fires(t.Value(r.Score))
}

// Attr is a score or a fact of the token.
func (t *token) Attr(name string) (star.Value, error) {
	if t.probe != nil {
		t.probe.give("reads %s of a token", name)
	}
	switch name {
	case "score":
		return star.Float(t.Score), nil
	case "entropy":
		return star.Float(t.Entropy), nil
	case "normalised":
		return star.Float(t.Normalised), nil
	case "confidence":
		return star.Float(t.Confidence), nil
	case "margin":
		return star.Float(t.Margin), nil
	case "id":
		return star.MakeInt(int(t.ID)), nil
	case "pos":
		return star.MakeInt(int(t.Pos)), nil
	case "model":
		return star.MakeInt(int(t.Model)), nil
	case "stop":
		return star.Bool(t.Stop), nil
	}
	return nil, nil
}

// AttrNames implements star.HasAttrs.
func (t *token) AttrNames() []string {
	return []string{"confidence", "entropy", "id", "margin", "model", "normalised", "pos", "score", "stop"}
}

// verdict is what a verifying step returns.
type verdict struct {
	token
	drafted, accepted int
	drafts            *star.List
}

func (v *verdict) String() string {
	return fmt.Sprintf("verdict(%d of %d accepted)", v.accepted, v.drafted)
}
func (v *verdict) Type() string { return "verdict" }

// Attr is a token's, or what became of the drafts.
func (v *verdict) Attr(name string) (star.Value, error) {
	switch name {
	case "drafted":
		return star.MakeInt(v.drafted), nil
	case "accepted":
		return star.MakeInt(v.accepted), nil
	case "drafts":
		return v.drafts, nil
	}
	return v.token.Attr(name)
}

// AttrNames implements star.HasAttrs.
func (v *verdict) AttrNames() []string {
	return append([]string{"accepted", "drafted", "drafts"}, v.token.AttrNames()...)
}

// newVerdict copies a verdict: a file may keep it.
func newVerdict(v route.Verdict) *verdict {
	x := &verdict{token: token{Token: v.Token}, drafted: v.Drafted, accepted: v.Accepted}
	list := make([]star.Value, len(v.Drafts))
	for i := range v.Drafts {
		list[i] = &draftValue{v.Drafts[i]}
	}
	x.drafts = star.NewList(list)
	x.drafts.Freeze()
	return x
}

// draftValue is a drafted token's score.
type draftValue struct{ score step.DraftScore }

func (d *draftValue) String() string {
	return fmt.Sprintf("draft(ratio = %g, kept = %v)", d.score.Ratio, d.score.Kept)
}
func (d *draftValue) Type() string          { return "draft" }
func (d *draftValue) Freeze()               {}
func (d *draftValue) Truth() star.Bool      { return true }
func (d *draftValue) Hash() (uint32, error) { return 0, fmt.Errorf("unhashable: draft") }

// Attr is one part of the score.
func (d *draftValue) Attr(name string) (star.Value, error) {
	switch name {
	case "ratio":
		return star.Float(d.score.Ratio), nil
	case "variation":
		return star.Float(d.score.Variation), nil
	case "gain":
		return star.Float(d.score.Gain), nil
	case "loss":
		return star.Float(d.score.Loss), nil
	case "kept":
		return star.Bool(d.score.Kept), nil
	case "agrees":
		return star.Bool(d.score.Agrees), nil
	}
	return nil, nil
}

// AttrNames implements star.HasAttrs.
func (d *draftValue) AttrNames() []string {
	return []string{"agrees", "gain", "kept", "loss", "ratio", "variation"}
}
