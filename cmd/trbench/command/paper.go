package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/cmd/trbench/paper"
	"github.com/trbench/trbench/results"
)

// The presets that compare published numbers with ours, both sources in one report.
const (
	paperPreset   = "paper"
	articlePreset = "article"
)

// paperKeys are the keys that apply to the published numbers: each of those has its own set-up, and any
// other key would make it something else.
var paperKeys = []string{"seed", "workers", "out", "output", "plot"}

// runPaper is trbench run paper.
// article is the part of it whose source the article is.
func runPaper(cmd *cobra.Command, name string, flags *configFlags, dryRun bool, progress, profile string) error {
	cfg, err := flags.config(nil)
	if err != nil {
		return err
	}
	for _, k := range experiment.Keys() {
		if where := flags.explicit[k.Name]; where != "" && !slices.Contains(paperKeys, k.Name) {
			return badUsage("%s (%s) does not apply: each published number has its own set-up; %s do, "+
				"and --progress, --dry-run, --cpuprofile", k.Name, where, strings.Join(paperKeys, ", "))
		}
	}
	if slices.Contains(cfg.Plot, "term") {
		return badUsage("--plot term: the comparison draws svg and png: its table is what a terminal shows")
	}
	sections, err := paper.Load()
	if err != nil {
		return err
	}
	o := paper.Options{Seed: cfg.Seed}
	if name != paperPreset {
		o.Source = name
	}
	cells := 0
	for i := range sections {
		sections[i].Cells = slices.DeleteFunc(sections[i].Cells, func(c *paper.Cell) bool { return !o.Has(c) })
		cells += len(sections[i].Cells)
	}
	hash, out := paper.Hash(cfg.Seed, o.Source), cfg.Out
	if out == "" {
		out = filepath.Join("runs", name+"-"+hash[:8])
	}
	if dryRun {
		return describePaper(cmd, sections, cells, out)
	}
	stop, err := startProfile(profile)
	if err != nil {
		return err
	}
	defer stop()
	folder, err := results.Create(out, hash)
	if err != nil {
		return badUsage("%w", err)
	}
	if err := compare(cmd, cfg, folder, hash, o, cells, progress); err != nil {
		return errors.Join(err, folder.Discard())
	}
	return nil
}

// compare computes ours of every cell into folder, and prints the comparison.
func compare(cmd *cobra.Command, cfg *experiment.Config, folder *results.Folder, hash string, o paper.Options, cells int,
	progress string) error {
	keys := map[string]string{}
	for _, k := range experiment.Keys() {
		if slices.Contains(paperKeys, k.Name) {
			keys[k.Name] = k.Get(cfg)
		}
	}
	config, err := json.Marshal(keys)
	if err != nil {
		return err
	}
	start := time.Now()
	m := &results.Manifest{
		Run: hash, Version: version(), CommandLine: os.Args, Config: config, Seed: cfg.Seed, Clock: "virtual",
		StartedAt: &start, Host: results.DescribeHost(),
		Latency: []string{
			"measured: kernel tables of the A100, by model and tensor parallelism; host overhead and contention fitted",
			"published: the whole steps of the paper and the article, where a number is about those",
		},
	}
	if err := folder.Describe(m); err != nil {
		return err
	}
	bar, err := newProgress(cmd.ErrOrStderr(), progress, cells, "published numbers")
	if err != nil {
		return err
	}
	workers := cfg.Workers
	if workers == 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	o.Workers, o.Progress = workers, bar.add
	report, err := paper.Run(cmd.Context(), o)
	bar.done()
	if err != nil {
		if cmd.Context().Err() != nil {
			return &experiment.Error{Code: experiment.ExitInterrupted, Err: errors.New("interrupted: nothing is written")}
		}
		return err
	}
	var formats []string
	for _, f := range cfg.Plot {
		if f == "svg" || f == "png" {
			formats = append(formats, f)
		}
	}
	if _, err := report.Save(folder.Dir(), formats...); err != nil {
		return err
	}
	end := time.Now()
	m.FinishedAt = &end
	summary := report.Summary()
	m.Warnings = summary.Warnings
	if err := folder.Finish(m, summary); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch cfg.Output {
	case "json":
		return results.WriteSummary(w, summary)
	case "csv":
		return report.CSV(w)
	case "md":
		return report.Markdown(w)
	}
	if err := report.Table(w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "Results: %s\n", folder.Path())
	return err
}

// describePaper is --dry-run.
func describePaper(cmd *cobra.Command, sections []paper.Section, cells int, out string) error {
	w := cmd.OutOrStdout()
	for _, s := range sections {
		if len(s.Cells) == 0 {
			continue
		}
		fmt.Fprintf(w, "# %s: %s\n", s.Name, s.Title)
		for _, c := range s.Cells {
			how := c.Kind
			if c.None {
				how = "not computed"
			}
			fmt.Fprintf(w, "%s: %s, %s\n", c.ID, c.Source, how)
		}
	}
	_, err := fmt.Fprintf(w, "\n# Would compare %d published numbers, into %s\n", cells, out)
	return err
}
