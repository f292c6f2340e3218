package command

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	found := 0
	visit(Root(), func(c *cobra.Command) {
		for _, words := range commandLines(c.Example) {
			found++
			if words[0] != "trbench" {
				t.Errorf("%s: example %q does not start with trbench", c.CommandPath(), words)
				continue
			}
			cmd, rest, err := Root().Find(words[1:])
			if err == nil {
				err = cmd.ParseFlags(rest)
			}
			if err == nil {
				err = cmd.ValidateArgs(cmd.Flags().Args())
			}
			if err != nil {
				t.Errorf("%s: example %q: %v", c.CommandPath(), words, err)
			}
		}
	})
	if found < 8 {
		t.Errorf("found %d command lines in examples, want at least 8", found)
	}
}

// commandLines splits a text into command lines and words as a shell does: at blanks and ends of lines, but not in
// quotes or behind a backslash. Three blanks end a command line; behind them the text says what it does.
func commandLines(text string) [][]string {
	text = joined.ReplaceAllString(text, " ")
	var lines [][]string
	for text != "" {
		var words []string
		text, words = commandLine(text)
		if len(words) > 0 {
			lines = append(lines, words)
		}
	}
	return lines
}

// joined is where a command line goes on in the next line.
var joined = regexp.MustCompile(`\s*\\\n\s*`)

// commandLine takes the first command line off a text.
func commandLine(text string) (rest string, words []string) {
	var word strings.Builder
	quote, blanks, over := rune(0), 0, false
	end := func() {
		if word.Len() > 0 && !over {
			words = append(words, word.String())
		}
		word.Reset()
	}
	for i, r := range text {
		if r != ' ' {
			blanks = 0
		}
		switch {
		case quote == 0 && r == '\n':
			end()
			return text[i+1:], words
		case quote == 0 && r == ' ':
			end()
			blanks++
			over = over || blanks == 3 && words != nil
		case quote == 0 && !over && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		default:
			word.WriteRune(r)
		}
	}
	end()
	return "", words
}

func TestCommandLines(t *testing.T) {
	text := "  a b   it's said\n  c 'd e\nf' \"g'h\"\n\n  i \\\n    j"
	want := [][]string{{"a", "b"}, {"c", "d e\nf", "g'h"}, {"i", "j"}}
	if diff := cmp.Diff(want, commandLines(text)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
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
