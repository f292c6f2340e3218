package command

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trbench/trbench/cmd/trbench/experiment"
)

var update = flag.Bool("update", false, "write docs/cli as the commands are now")

// referenceDir is docs/cli as seen from this package.
var referenceDir = filepath.Join("..", "..", "..", "docs", "cli")

// TestCLIReference wants docs/cli to be what the commands say of themselves: one file a command, and one of the keys.
func TestCLIReference(t *testing.T) {
	want := reference(Root())
	if *update {
		if err := os.RemoveAll(referenceDir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(referenceDir, 0o777); err != nil {
			t.Fatal(err)
		}
		for name, text := range want {
			if err := os.WriteFile(filepath.Join(referenceDir, name), []byte(text), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	const how = "go test ./cmd/trbench/command -run TestCLIReference -update"
	entries, err := os.ReadDir(referenceDir)
	if err != nil {
		t.Fatalf("%v: make it by %s", err, how)
	}
	got := map[string]string{}
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(referenceDir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		got[e.Name()] = string(text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/cli is out of date: %s (-commands +docs)\n%s", how, diff)
	}
}

// reference is the Markdown of the whole command tree, by file name.
func reference(root *cobra.Command) map[string]string {
	files := map[string]string{"keys.md": keysPage()}
	var add func(*cobra.Command)
	add = func(c *cobra.Command) {
		files[pageName(c)] = page(c)
		for _, sub := range shown(c) {
			add(sub)
		}
	}
	add(root)
	return files
}

// shown are the subcommands that help lists; help itself needs no page.
func shown(c *cobra.Command) []*cobra.Command {
	return slices.DeleteFunc(slices.Clone(c.Commands()), func(sub *cobra.Command) bool {
		return !sub.IsAvailableCommand() || sub.Name() == "help"
	})
}

func pageName(c *cobra.Command) string { return strings.ReplaceAll(c.CommandPath(), " ", "_") + ".md" }

// page is the Markdown of one command.
func page(c *cobra.Command) string {
	c.InitDefaultHelpFlag()
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n", c.CommandPath(), prose(c.Short+"."))
	if c.Runnable() && len(shown(c)) == 0 {
		fmt.Fprintf(&b, "```\n%s\n```\n\n", c.UseLine())
	}
	if c.Long != "" {
		fmt.Fprintf(&b, "%s\n\n", prose(c.Long))
	}
	if c.Example != "" {
		fmt.Fprintf(&b, "## Examples\n\n```\n%s\n```\n\n", unindent(c.Example))
	}
	if subs := shown(c); len(subs) > 0 {
		b.WriteString("## Commands\n\n| Command | |\n|:--|:--|\n")
		for _, sub := range subs {
			fmt.Fprintf(&b, "| [%s](%s) | %s |\n", sub.CommandPath(), pageName(sub), cell(sub.Short))
		}
		b.WriteString("\n")
	}
	flagTables(&b, c)
	if !c.HasParent() {
		b.WriteString("Every setting of a run is a key: [keys](keys.md).\n")
	} else {
		fmt.Fprintf(&b, "Above: [%s](%s)\n", c.Parent().CommandPath(), pageName(c.Parent()))
	}
	return b.String()
}

// prose is help text as Markdown: paragraphs as they are, indented blocks as code.
func prose(text string) string {
	var out []string
	code, blank := false, 0
	fence := func(indented bool) {
		if code && !indented { // blank lines stay outside
			out = append(out, "```")
		}
		for ; blank > 0; blank-- {
			out = append(out, "")
		}
		if indented && !code {
			out = append(out, "```")
		}
		code = indented
	}
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		if line == "" {
			blank++
			continue
		}
		indented := strings.HasPrefix(line, "\t") || strings.HasPrefix(line, "  ")
		fence(indented)
		if !indented {
			line = angles.Replace(line)
		}
		out = append(out, strings.TrimPrefix(line, "\t"))
	}
	fence(false)
	return strings.Join(out, "\n")
}

// angles keeps <x> from being read as HTML.
var angles = strings.NewReplacer("<", "&lt;", ">", "&gt;")

// cell is text within a table.
func cell(text string) string {
	return strings.ReplaceAll(angles.Replace(strings.Join(strings.Fields(text), " ")), "|", `\|`)
}

func unindent(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}

// flagTables lists a command's flags: those that set a key in the groups of the keys, then its own.
func flagTables(b *strings.Builder, c *cobra.Command) {
	var groups []string
	rows := map[string][]string{}
	add := func(group, row string) {
		if rows[group] == nil {
			groups = append(groups, group)
		}
		rows[group] = append(rows[group], row)
	}
	var own []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if k, ok := f.Value.(*keyFlag); ok {
			add(k.key.Group, flagRow(f))
		} else {
			own = append(own, flagRow(f))
		}
	})
	if len(own) > 0 {
		add("Flags of the command", strings.Join(own, ""))
	}
	for _, g := range groups {
		fmt.Fprintf(b, "## %s\n\n| Flag | Value | Default | |\n|:--|:--|:--|:--|\n%s\n", g, strings.Join(rows[g], ""))
	}
}

func flagRow(f *pflag.Flag) string {
	value, usage := pflag.UnquoteUsage(f)
	name := "`--" + f.Name + "`"
	if f.Shorthand != "" {
		name = "`-" + f.Shorthand + "` " + name
	}
	return fmt.Sprintf("| %s | %s | %s | %s |\n", name, cell(value), given(f.DefValue), cell(usage))
}

// given is a default that says something.
func given(value string) string {
	switch value {
	case "", "[]", "false":
		return ""
	}
	return "`" + strings.ReplaceAll(value, "|", `\|`) + "`"
}

// keysPage lists every key: with its flag where it has one, and its variable.
func keysPage() string {
	var b strings.Builder
	b.WriteString("# Keys\n\n" +
		"Every setting of a run has one name: a line of `--config FILE` (YAML, nested or dotted), `--set KEY=VALUE`,\n" +
		"`TRBENCH_KEY` in the environment (dots as underscores), and for most a flag (underscores as dashes). Flags come\n" +
		"before the environment, the environment before the file. `trbench run --dry-run` prints them all, resolved, and\n" +
		"who set them.\n")
	group := ""
	for _, k := range experiment.Keys() {
		if k.Group != group {
			group = k.Group
			fmt.Fprintf(&b, "\n## %s\n\n", group)
			b.WriteString("| Key | Value | Default | Flag | Environment | |\n|:--|:--|:--|:--|:--|:--|\n")
		}
		name := ""
		if k.Flag {
			name = "`--" + flagName(k.Name) + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | `%s` | %s |\n",
			k.Name, k.Kind, given(k.Default), name, experiment.EnvName(k.Name), cell(k.Help))
	}
	b.WriteString("\nAbove: [trbench](trbench.md)\n")
	return b.String()
}
