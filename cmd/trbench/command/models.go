package command

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/models/weights"
)

func modelsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "models",
		Short: "List the known models, pairs and measured step times",
		Args:  unknownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(modelsList(), modelsShow(), modelsInspect())
	return cmd
}

// modelEntry is one model as list and show print it.
type modelEntry struct {
	Name            string           `json:"name"`
	Aliases         []string         `json:"aliases"`
	Params          int64            `json:"params"`
	WeightBytes     int64            `json:"weight_bytes"`
	KVBytesPerToken int64            `json:"kv_bytes_per_token"`
	TP              map[string][]int `json:"tp"` // tabled tensor parallelisms by GPU
	Layers          int              `json:"layers"`
	Hidden          int              `json:"hidden"`
	Heads           int              `json:"heads"`
	KVHeads         int              `json:"kv_heads"`
	Vocab           int              `json:"vocab"`
}

func describeModel(c models.Card) modelEntry {
	e := modelEntry{
		Name: c.Name, Aliases: c.Aliases, Params: c.Params(), WeightBytes: c.WeightBytes(), KVBytesPerToken: c.KVBytesPerToken(),
		TP: map[string][]int{}, Layers: c.Layers, Hidden: c.Hidden, Heads: c.Heads, KVHeads: c.KVHeads, Vocab: c.Vocab,
	}
	for _, g := range models.GPUNames() {
		if tps := latency.TPs(g, c.Name); len(tps) > 0 {
			e.TP[g] = tps
		}
	}
	return e
}

func modelsList() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List models with their size and the GPUs they have measured step times on, and the pairs",
		Args:  none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			var entries []modelEntry
			for _, c := range models.Cards() {
				entries = append(entries, describeModel(c))
			}
			out := cmd.OutOrStdout()
			if format == "json" {
				type pair struct {
					Name   string   `json:"name"`
					Models []string `json:"models"`
				}
				doc := struct {
					Models []modelEntry `json:"models"`
					Pairs  []pair       `json:"pairs"`
				}{Models: entries}
				for _, p := range models.Pairs() {
					doc.Pairs = append(doc.Pairs, pair{p.Name, memberNames(p)})
				}
				return writeJSON(out, doc)
			}
			fmt.Fprintf(out, "%-13s %8s %9s %9s  %s\n", "model", "params", "weights", "KV/token", "step times (tensor parallelism)")
			for _, e := range entries {
				fmt.Fprintf(out, "%-13s %7.2fB %7.1fGB %7.0fKB  %s\n", e.Name, float64(e.Params)/1e9, float64(e.WeightBytes)/1e9,
					float64(e.KVBytesPerToken)/1e3, tabled(e.TP))
			}
			fmt.Fprintf(out, "\n%-20s %s\n", "pair", "models")
			for _, p := range models.Pairs() {
				fmt.Fprintf(out, "%-20s %s\n", p.Name, strings.Join(memberNames(p), ", "))
			}
			return nil
		},
	}
	outputFormat(cmd, &format)
	return cmd
}

// tabled is "a100 1,2; h100 1,2".
func tabled(tp map[string][]int) string {
	var parts []string
	for _, g := range models.GPUNames() {
		if tps := tp[g]; len(tps) > 0 {
			parts = append(parts, g+" "+strings.Trim(strings.ReplaceAll(fmt.Sprint(tps), " ", ","), "[]"))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, "; ")
}

func memberNames(p models.Pair) []string {
	var names []string
	for _, c := range p.Models {
		names = append(names, c.Name)
	}
	return names
}

func modelsShow() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "show MODEL|PAIR",
		Short: "Show a model's card and step times, or a pair's default deployment on each GPU",
		Args:  exactly("MODEL|PAIR"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return append(models.Names(), models.PairNames()...), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			out := cmd.OutOrStdout()
			if p, err := models.LookupPair(args[0]); err == nil {
				return showPair(out, p, format)
			}
			c, err := models.Lookup(args[0])
			if err != nil {
				return badUsage("%w", err)
			}
			e := describeModel(c)
			if format == "json" {
				return writeJSON(out, e)
			}
			fmt.Fprintf(out, "%s (also %s)\n", e.Name, strings.Join(e.Aliases, ", "))
			fmt.Fprintf(out, "  %d layers, hidden %d, %d heads, %d KV heads, vocabulary %d\n", e.Layers, e.Hidden, e.Heads, e.KVHeads, e.Vocab)
			fmt.Fprintf(out, "  %.3f billion parameters, %.2f GB in bf16, %d bytes of KV a token\n", float64(e.Params)/1e9, float64(e.WeightBytes)/1e9, e.KVBytesPerToken)
			fmt.Fprintf(out, "\n  decode step, kernels only (measured), ms at context 1024, and of a prefill of 1024 tokens\n")
			fmt.Fprintf(out, "  %-10s %8s %8s %8s %8s %10s\n", "gpu tp", "b=1", "b=8", "b=64", "b=256", "prefill")
			return showSteps(out, c)
		},
	}
	outputFormat(cmd, &format)
	return cmd
}

func showSteps(w io.Writer, c models.Card) error {
	for _, key := range latency.Profiles() {
		if key.Model != c.Name {
			continue
		}
		p, err := latency.Lookup(key.GPU, key.Model, key.TP)
		if err != nil {
			return err
		}
		m := p.New()
		fmt.Fprintf(w, "  %-10s", fmt.Sprintf("%s %d", key.GPU, key.TP))
		for _, b := range []int{1, 8, 64, 256} {
			fmt.Fprintf(w, " %8.2f", m.StepTime(decodeShape(b, 1024)).Seconds()*1e3)
		}
		fmt.Fprintf(w, " %10.2f\n", m.StepTime(prefillShape(1024)).Seconds()*1e3)
	}
	return nil
}

func showPair(w io.Writer, p models.Pair, format string) error {
	type place struct {
		GPU      string `json:"gpu"`
		GPUs     int    `json:"gpus"`
		TP       []int  `json:"tp"`
		KVTokens int    `json:"kv_tokens"`
		Error    string `json:"error,omitempty"`
	}
	var places []place
	for _, g := range models.GPUs() {
		var allowed [][]int
		for _, c := range p.Models {
			allowed = append(allowed, latency.TPs(g.Name, c.Name))
		}
		d, err := models.DefaultDeployment(g, p.Models, allowed, true, models.DefaultMemoryShare)
		if err != nil {
			places = append(places, place{GPU: g.Name, Error: err.Error()})
			continue
		}
		kv, err := d.KVTokens(p.Models)
		if err != nil {
			return err
		}
		places = append(places, place{GPU: g.Name, GPUs: d.GPUs, TP: d.TP, KVTokens: kv})
	}
	if format == "json" {
		return writeJSON(w, struct {
			Name   string   `json:"name"`
			Models []string `json:"models"`
			Places []place  `json:"deployments"`
		}{p.Name, memberNames(p), places})
	}
	fmt.Fprintf(w, "%s: %s\n\n  default deployment, GPUs shared by the models\n", p.Name, strings.Join(memberNames(p), ", "))
	for _, x := range places {
		if x.Error != "" {
			fmt.Fprintf(w, "  %-6s %s\n", x.GPU, x.Error)
			continue
		}
		tps := slices.Clone(x.TP)
		fmt.Fprintf(w, "  %-6s %d GPUs, TP %s, KV pool of %d tokens for each model\n", x.GPU, x.GPUs, strings.Trim(strings.ReplaceAll(fmt.Sprint(tps), " ", ", "), "[]"), x.KVTokens)
	}
	return nil
}

func decodeShape(batch int, context int64) step.Shape {
	return step.Shape{Decodes: batch, DecodeContext: int64(batch) * context, Longest: int(context)}
}

func prefillShape(tokens int64) step.Shape {
	return step.Shape{Extends: 1, ExtendTokens: tokens, ExtendWork: tokens * tokens, ExtendContext: tokens, Longest: int(tokens)}
}

func modelsInspect() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "inspect DIR",
		Short: "Check a folder of Hugging Face weights, and show what the engine would run",
		Args:  exactly("DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			m, err := weights.Open(args[0])
			if err != nil {
				return &experiment.Error{Code: experiment.ExitTarget, Err: err}
			}
			defer m.Close()
			c := m.Config
			card := c.Card(filepath.Base(filepath.Clean(args[0])))
			if format == "json" {
				return writeJSON(cmd.OutOrStdout(), struct {
					Architecture string         `json:"architecture"`
					Params       int64          `json:"params"`
					Bytes        int64          `json:"weight_bytes"`
					Config       weights.Config `json:"config"`
				}{string(c.Architecture), m.Params(), m.Bytes(), c})
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%s: %s\n", card.Name, c.Architecture)
			fmt.Fprintf(out, "  %d layers, hidden %d, %d heads of %d, %d KV heads, intermediate %d, vocabulary %d\n", c.Layers, c.Hidden, c.Heads, c.HeadDim,
				c.KVHeads, c.Intermediate, c.Vocab)
			fmt.Fprintf(out, "  %d positions, rope theta %g%s, tied embeddings %v, QKV bias %v, QK norm %v\n", c.MaxPositions, c.RopeTheta, ropeText(c), c.Tied, c.QKVBias, c.QKNorm)
			fmt.Fprintf(out, "  %d parameters in %s, %.2f MB on disk, %d bytes of KV a token in f32\n", m.Params(), m.Embedding.DType, float64(m.Bytes())/1e6, 2*card.KVBytesPerToken())
			fmt.Fprintf(out, "  every tensor is there, and has its shape\n")
			return nil
		},
	}
	outputFormat(cmd, &format)
	return cmd
}

func ropeText(c weights.Config) string {
	if c.RopeScaling.Kind == "" || c.RopeScaling.Kind == "default" {
		return ""
	}
	return fmt.Sprintf(" (%s x %g)", c.RopeScaling.Kind, c.RopeScaling.Factor)
}
