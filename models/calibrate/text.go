package calibrate

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/results"
)

// width is that of a terminal, columns.
const width = 80

// Text writes what a person reads of a report, at most 80 columns wide.
func (r *Report) Text(w io.Writer) error {
	p := &printer{}
	if s := r.Steps; s != nil {
		for _, m := range s.Models {
			p.model(s.File, m)
		}
		if len(s.Models) > 1 {
			p.heading("all models: one modulation for a run")
			p.chain(s.Modulation)
		}
	}
	if t := r.Tokens; t != nil {
		p.tokens(t)
	}
	if b := r.Bench; b != nil {
		p.bench(b)
	}
	if all := r.Warnings(); len(all) > 0 {
		p.heading("warnings")
		for _, text := range all {
			p.paragraph("  ", text)
		}
	}
	if len(r.Files) > 0 {
		p.heading("written")
		for _, f := range r.Files {
			p.line("  %s", f)
		}
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// printer lays text out.
type printer struct{ strings.Builder }

func (p *printer) line(format string, args ...any) {
	p.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
}

func (p *printer) heading(format string, args ...any) {
	if p.Len() > 0 {
		p.WriteString("\n")
	}
	p.paragraph("", fmt.Sprintf(format, args...))
}

// paragraph breaks text into lines; indent stands before each, and two blanks more before all but the first.
func (p *printer) paragraph(indent, text string) {
	line := indent
	empty := true
	for _, word := range strings.Fields(text) {
		if !empty && runes(line)+1+runes(word) > width {
			p.line("%s", line)
			line, empty = indent+"  ", true
		}
		if !empty {
			line += " "
		}
		line += word
		empty = false
	}
	p.line("%s", line)
}

func runes(s string) int { return len([]rune(s)) }

func (p *printer) model(file string, m *ModelReport) {
	p.heading("%s (%s)", m.Model, file)
	c := m.Covers
	p.line("  steps      %s: %s of decodes, %s of extends, %s of both, %s unknown",
		thousands(m.Steps), thousands(c.Decodes), thousands(c.Extends), thousands(c.Mixed), thousands(m.Unknown))
	if c.Batch != nil {
		p.line("  covers     decode batch %s, context %s", c.Batch, c.ContextTokens)
	}
	if c.ExtendTokens != nil {
		p.line("  covers     tokens fed by extends %s", c.ExtendTokens)
	}
	p.line("")
	if m.Law == latency.KindTable {
		p.table(m.Table)
	} else {
		p.coefficients(m)
	}
	if m.HostMS > 0 {
		p.line("  %-25s %12s   given, split off the bases", "host_ms", short(m.HostMS))
	}
	p.line("")
	e := m.Error
	p.line("  error      mean %s, P99 %s, max %s, bias %s",
		percent(e.Mean), percent(e.P99), percent(e.Max), signed(e.Bias))
	p.line("             given the state: mean %s", percent(e.GivenState))
	if out, ok := e.HeldOut.Get(); ok {
		p.line("             last fifth from the rest: mean %s, bias %s", percent(out), signed(e.HeldOutBias.Or(0)))
	}
	if m.GapMS != nil {
		p.line("  gap        %s ms between steps that follow on (median of %s)",
			short(m.GapMS.MedianMS), thousands(m.GapMS.Pairs))
	}
	p.line("")
	p.chain(m.Chain)
}

func (p *printer) coefficients(m *ModelReport) {
	p.line("  %-25s %12s   %s", "law (affine)", "value", "95 % interval")
	for _, k := range m.Coefficients {
		if !k.Told {
			p.line("  %-25s %12s   not told by this log", k.Name, short(k.Value))
			continue
		}
		p.line("  %-25s %12s   %s", k.Name, short(k.Value), interval(k.Estimate))
	}
}

// table shows a table's corners and prefills: all of it is in calibration.json.
func (p *printer) table(t *TableReport) {
	n, all := t.empty()
	p.line("  law (table): %d points, %d of them with hardly a step near", all, n)
	p.line("  %-25s %12s   %s", "", "ms", "95 % interval")
	first, last := t.Decode[0], t.Decode[len(t.Decode)-1]
	for _, q := range t.Decode {
		if (q.Batch == first.Batch || q.Batch == last.Batch) &&
			(q.ContextTokens == first.ContextTokens || q.ContextTokens == last.ContextTokens) {
			p.line("  %-25s %12s   %s", fmt.Sprintf("batch %d, context %d", q.Batch, q.ContextTokens),
				short(q.StepMS.Value), interval(q.StepMS))
		}
	}
	for _, q := range t.Prefill {
		p.line("  %-25s %12s   %s", fmt.Sprintf("prefill of %d", q.Tokens), short(q.StepMS.Value), interval(q.StepMS))
	}
}

func (p *printer) chain(c *ChainReport) {
	var bic []string
	for _, k := range c.Candidates {
		bic = append(bic, fmt.Sprintf("%d: %.0f", k.States, k.BIC))
	}
	p.paragraph("  ", fmt.Sprintf("residual   %d state%s; BIC by states %s; spread within a state %s", len(c.States),
		plural(len(c.States)), strings.Join(bic, ", "), percent(c.Spread.Value)))
	if len(c.States) == 1 {
		return
	}
	p.line("  %-7s %10s   %-22s %7s %9s %9s", "state", "multiplier", "95 % interval", "share", "stay", "entries")
	for _, s := range c.States {
		stay := "-"
		if s.StaySteps.Value > 0 {
			stay = fmt.Sprintf("%.1f", s.StaySteps.Value)
		}
		p.line("  %-7s %10.4g   %-22s %7s %9s %9.0f", s.Name, s.Multiplier.Value, interval(s.Multiplier),
			percent(s.Share), stay, s.Entries)
	}
	p.line("  %-7s %-8s %11s   %s", "from", "to", "probability", "95 % interval")
	for i, from := range c.States {
		for k, to := range c.States {
			name := from.Name
			if k > 0 {
				name = ""
			}
			t := c.Transition[i][k]
			p.line("  %-7s %-8s %11s   %s", name, to.Name, short(t.Value), interval(t))
		}
	}
}

func (p *printer) tokens(t *TokensReport) {
	p.heading("%s: %s tokens of %s request%s", t.File, thousands(t.Tokens), thousands(t.Requests), plural(t.Requests))
	if t.Form == PairTrace {
		p.paragraph("  ", "Nobody routed here: a token counts as the large model's where the models' likeliest "+
			"tokens differ.")
	}
	p.line("  %-22s %9s   %-20s", "writer", "share", "95 % interval")
	for i, name := range t.Models {
		p.line("  %-22s %9s   %s", clip(name, 22), percent(t.Share[i].Value), percents(t.Share[i]))
	}
	p.line("")
	p.line("  %-22s %-22s %9s   %s", "P: from", "to", "", "95 % interval")
	for i, from := range t.Models {
		for k, to := range t.Models {
			e := t.Transition[i][k]
			p.line("  %-22s %-22s %9s   %s", clip(from, 22), clip(to, 22), short(e.Value), interval(e))
		}
	}
	p.line("")
	p.line("  %-20s %8s %9s %10s %10s %7s %8s", "runs of", "runs", "mean", "variance", "geometric", "ratio", "p")
	for i, run := range t.Runs {
		if run == nil {
			continue
		}
		ratio := "-"
		if x, ok := run.Index.Get(); ok {
			ratio = fmt.Sprintf("%.2f", x)
		}
		p.line("  %-20s %8s %9.4g %10.4g %10.4g %7s %8.2g", clip(t.Models[i], 20), thousands(run.Runs),
			run.Mean, run.Variance, run.Geometric, ratio, run.P)
	}
	if q := t.Routing; q != nil {
		p.line("")
		p.line("  %-25s %9s   %s", "routing", "", "95 % interval")
		for _, f := range []struct {
			name string
			e    Estimate
		}{{"large fraction", q.LargeFraction}, {"P(0->1)", q.ToLarge}, {"P(1->1)", q.StayLarge},
			{"correlation", q.Correlation}} {
			p.line("  %-25s %9s   %s", f.name, short(f.e.Value), interval(f.e))
		}
		p.paragraph("  ", fmt.Sprintf("one token each time (R2R): switch_rate %s; while it fires (R-Stitch): "+
			"switch_rate %s, return_rate %s",
			short(q.After.SwitchRate), short(q.Stay.SwitchRate), short(q.Stay.ReturnRate)))
	}
	if t.Acceptance != nil || t.Agreement != nil {
		p.line("")
		p.line("  %-25s %9s   %s", "drafts", "", "95 % interval")
		for _, f := range []struct {
			name string
			e    *Estimate
		}{{"acceptance", t.Acceptance}, {"its lag-1 correlation", t.Memory}, {"top-1 agreement", t.Agreement}} {
			if f.e != nil {
				p.line("  %-25s %9s   %s", f.name, short(f.e.Value), interval(*f.e))
			}
		}
	}
	p.phases(t)
}

// phases shows the profile over the output, at most a dozen windows of it.
func (p *printer) phases(t *TokensReport) {
	if len(t.Phases) < 2 {
		return
	}
	const most = 12
	p.line("")
	p.line("  %-16s %9s %9s   %s", "output tokens", "tokens", "large", "95 % interval")
	for i, w := range t.Phases {
		if i == most {
			p.line("  and %d windows more", len(t.Phases)-most)
			break
		}
		to := ""
		if i+1 < len(t.Phases) {
			to = strconv.Itoa(t.Phases[i+1].From - 1)
		}
		span := strconv.Itoa(w.From) + "-" + to
		p.line("  %-16s %9s %9s   %s", span, thousands(w.Tokens), percent(w.Rate.Value), percents(w.Rate))
	}
}

func (p *printer) bench(b *BenchReport) {
	p.heading("%s: %s on %s, %s requests, %s failed", b.File, orUnknown(b.Model), orUnknown(b.Backend),
		thousands(b.Requests), thousands(b.Failed))
	p.line("  %s tok/s output over %s s, %s requests/s; rate %s, concurrency %s", short(b.OutputTokS),
		short(b.DurationS), short(b.RequestRateS), orUnknown(b.RequestRate), concurrencyText(b.Concurrency))
	p.line("  %-20s %10s %10s %10s %10s", "", "mean", "p50", "p90", "p99")
	for _, m := range []struct {
		name string
		d    *results.Dist
	}{{"ttft_from_send_ms", b.TTFT}, {"tpot_ms", b.TPOT}, {"itl_ms", b.ITL}, {"icl_ms", b.ICL}, {"e2e_ms", b.E2E}} {
		if m.d == nil {
			continue
		}
		cells := []any{m.name, short(m.d.Mean)}
		for _, q := range []float64{50, 90, 99} {
			text := "-"
			if x, ok := m.d.Percentile(q).Get(); ok {
				text = short(x)
			}
			cells = append(cells, text)
		}
		p.line("  %-20s %10s %10s %10s %10s", cells...)
	}
	if len(b.Check) == 0 {
		return
	}
	p.line("")
	p.paragraph("  ", "against "+b.Against)
	p.line("  %-16s %-6s %12s %12s %9s", "", "", "measured", "predicted", "error")
	for _, f := range b.Check {
		e := "-"
		if x, ok := f.Error.Get(); ok {
			e = signed(x)
		}
		p.line("  %-16s %-6s %12s %12s %9s", f.Name, f.Statistic, short(f.Measured), short(f.Predicted), e)
	}
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func concurrencyText(n int) string {
	if n == 0 {
		return "unlimited"
	}
	return strconv.Itoa(n)
}

func (r *Range) String() string {
	return fmt.Sprintf("%.0f-%.0f (median %.0f)", r.Min, r.Max, r.Median)
}

func clip(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// short is a number with five digits.
func short(x float64) string {
	if a := math.Abs(x); a >= 1e5 && a < 1e15 {
		return strconv.FormatFloat(x, 'f', 0, 64)
	}
	return strconv.FormatFloat(x, 'g', 5, 64)
}

// interval is "low to high", with as many digits as tell its ends apart from the value.
func interval(e Estimate) string {
	low, ok := e.Low.Get()
	high, both := e.High.Get()
	switch {
	case !ok && !both:
		return "-"
	case low == high:
		return "by definition"
	case !ok:
		return "to " + short(high)
	case !both:
		return "from " + short(low)
	}
	digits := 5
	if half := (high - low) / 2; half > 0 && e.Value != 0 {
		digits = min(9, max(3, 2+int(math.Ceil(math.Log10(math.Abs(e.Value)/half)))))
	}
	f := func(x float64) string { return fmt.Sprintf("%#.*g", digits, x) } // zeros at the end say how sure it is
	return f(low) + " to " + f(high)
}

func percent(x float64) string {
	digits := 1
	switch a := math.Abs(x); {
	case a < .0995:
		digits = 2
	case a >= 1000: // of a law that doesn't hold at all
		return strconv.FormatFloat(100*x, 'g', 3, 64) + " %"
	}
	return strconv.FormatFloat(100*x, 'f', digits, 64) + " %"
}

func signed(x float64) string {
	if x >= 0 {
		return "+" + percent(x)
	}
	return percent(x)
}

func percents(e Estimate) string {
	return percent(e.Low.Or(0)) + " to " + percent(e.High.Or(1))
}

// thousands is a count with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
