package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trbench/trbench/cmd/trbench/experiment"
)

// visit calls f for a command and all below it.
func visit(c *cobra.Command, f func(*cobra.Command)) {
	f(c)
	for _, sub := range c.Commands() {
		visit(sub, f)
	}
}

// TestExamples wants every command line of an example to have a command and flags that exist, with values that they
// take.
func TestExamples(t *testing.T) {
	lines := 0
	visit(Root(), func(c *cobra.Command) {
		for _, line := range strings.Split(c.Example, "\n") {
			line, _, _ = strings.Cut(strings.TrimSpace(line), "   ") // the rest says what it does
			if line == "" {
				continue
			}
			lines++
			words := words(line)
			if words[0] != "trbench" {
				t.Errorf("%s: example %q does not start with trbench", c.CommandPath(), line)
				continue
			}
			cmd, rest, err := Root().Find(words[1:])
			if err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
				continue
			}
			if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), line, err)
			}
		}
	})
	if lines < 8 {
		t.Errorf("found %d lines of examples, want at least 8", lines)
	}
}

// words splits a command line as a shell does: at blanks, but not in quotes.
func words(line string) []string {
	var all []string
	var word strings.Builder
	quote := rune(0)
	for _, r := range line + " " {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				all = append(all, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return all
}

// TestHelp wants every command to have a line of help and a page that shows each of its flags.
func TestHelp(t *testing.T) {
	visit(Root(), func(c *cobra.Command) {
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short help %q: want a phrase without a full stop", c.CommandPath(), c.Short)
		}
		var out, errs bytes.Buffer
		args := append(strings.Fields(c.CommandPath())[1:], "--help")
		if code := Main(args, &out, &errs); code != experiment.ExitOK || errs.Len() > 0 {
			t.Errorf("%s --help: exit code %d, stderr %q", c.CommandPath(), code, errs.String())
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(out.String(), "--"+f.Name) {
				t.Errorf("%s --help does not show --%s", c.CommandPath(), f.Name)
			}
			if f.Usage == "" {
				t.Errorf("%s: --%s has no help", c.CommandPath(), f.Name)
			}
		})
	})
}

// TestEveryKeyCanBeSet wants each key to have its flag on run, or none, and --set to take all of them.
func TestEveryKeyCanBeSet(t *testing.T) {
	run, _, err := Root().Find([]string{"run"})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range experiment.Keys() {
		f := run.Flags().Lookup(flagName(k.Name))
		if (f != nil) != k.Flag {
			t.Errorf("key %s: has a flag: %t, want %t", k.Name, f != nil, k.Flag)
		}
		if err := experiment.Defaults().SetPair(k.Name + "=" + k.Default); err != nil {
			t.Errorf("--set %s=%s: %v", k.Name, k.Default, err)
		}
	}
}
