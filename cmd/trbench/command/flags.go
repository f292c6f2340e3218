package command

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/internal/suggest"
	"github.com/trbench/trbench/models"
	"github.com/trbench/trbench/models/latency"
	"github.com/trbench/trbench/workloads"
)

// configFlags are the flags that make an experiment.Config: one for each key that has one, --set for all, --config.
type configFlags struct {
	file   string
	sets   []string
	values map[string]*keyFlag
	// explicit names the keys that the user has set, by where.
	explicit map[string]string
}

// keyFlag holds a key's flag until the layers are laid over each other.
type keyFlag struct {
	key  experiment.Key
	text string
	set  bool
}

func (f *keyFlag) String() string { return f.text }
func (f *keyFlag) Type() string   { return f.key.Kind }

// Set checks the value at once, so that the error names the flag.
func (f *keyFlag) Set(s string) error {
	if err := experiment.Defaults().Set(f.key.Name, s); err != nil {
		return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), f.key.Name+": "))
	}
	f.text, f.set = s, true
	return nil
}

func flagName(key string) string { return strings.ReplaceAll(key, "_", "-") }

// addConfigFlags gives cmd the flags.
//
// defaults are those of the keys in which the command differs from Keys, for its help.
func addConfigFlags(cmd *cobra.Command, defaults map[string]string) *configFlags {
	c := &configFlags{values: map[string]*keyFlag{}, explicit: map[string]string{}}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&c.file, "config", "", "YAML `FILE` of keys, nested or dotted")
	fs.StringArrayVar(&c.sets, "set", nil, "set any key, `KEY=VALUE`; may be repeated (trbench run --dry-run lists the keys)")
	for _, k := range experiment.Keys() {
		if !k.Flag {
			continue
		}
		v := &keyFlag{key: k, text: k.Default}
		if text, ok := defaults[k.Name]; ok {
			v.text = text
		}
		c.values[k.Name] = v
		f := fs.VarPF(v, flagName(k.Name), "", k.Help)
		if k.Kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	c.completions(cmd)
	return c
}

// completions offers the known names of flags that take one.
func (c *configFlags) completions(cmd *cobra.Command) {
	var systems, gpus []string
	for _, s := range experiment.Systems() {
		systems = append(systems, s.Name+"\t"+s.Summary)
	}
	gpus = append(latency.Names(), "const:")
	complete(cmd, "system", systems...)
	complete(cmd, "workload", workloads.Names()...)
	complete(cmd, "algorithm", route.Names()...)
	complete(cmd, "pair", models.PairNames()...)
	complete(cmd, "small", models.Names()...)
	complete(cmd, "large", models.Names()...)
	complete(cmd, "latency", gpus...)
	complete(cmd, "modulation", latency.ModulationNames()...)
	complete(cmd, "signal", "iid", "bursty", "phased", "replay:")
	complete(cmd, "engine", "sim", "fake", "cpu")
	complete(cmd, "output", "table", "json", "csv", "md")
	complete(cmd, "plot", "svg", "png", "svg,png", "term", "none")
	complete(cmd, "sampler", workloads.Samplers()...)
	complete(cmd, "arrival", "closed", "poisson:", "gamma:", "constant:", "ramp:", "trace")
	complete(cmd, "threshold", "eager", "auto")
	complete(cmd, "batching", "threshold", "gate:", "timer:")
}

// config lays defaults, file, environment and flags over each other, the later ones on top.
func (c *configFlags) config(base func(*experiment.Config) error) (*experiment.Config, error) {
	cfg := experiment.Defaults()
	if base != nil {
		if err := base(cfg); err != nil {
			return nil, err
		}
	}
	before := texts(cfg)
	mark := func(where string) {
		now := texts(cfg)
		for key, text := range now {
			if text != before[key] {
				c.explicit[key] = where
			}
		}
		before = now
	}
	if c.file != "" {
		if err := cfg.LoadFile(c.file); err != nil {
			return nil, err
		}
		mark("file")
	}
	if err := cfg.LoadEnv(os.LookupEnv); err != nil {
		return nil, err
	}
	mark("environment")
	warnUnknownEnv(os.Environ(), os.Stderr)
	for _, k := range experiment.Keys() {
		if v := c.values[k.Name]; v != nil && v.set {
			if err := cfg.Set(k.Name, v.text); err != nil {
				return nil, badUsage("--%s: %w", flagName(k.Name), err)
			}
			c.explicit[k.Name] = "flag"
		}
	}
	mark("flag")
	for _, pair := range c.sets {
		if err := cfg.SetPair(pair); err != nil {
			return nil, err
		}
	}
	mark("--set")
	return cfg, nil
}

// warnUnknownEnv names variables that look like keys and are none: a typo there is easily missed.
func warnUnknownEnv(environ []string, w io.Writer) {
	known := map[string]bool{"TRBENCH_SIMD": true, "TRBENCH_TOKENIZERS": true}
	var names []string
	for _, k := range experiment.Keys() {
		name := experiment.EnvName(k.Name)
		known[name] = true
		names = append(names, name)
	}
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, experiment.EnvPrefix) || known[name] {
			continue
		}
		hint := ""
		if near, ok := suggest.Nearest(name, names); ok {
			hint = ": did you mean " + near + "?"
		}
		fmt.Fprintf(w, "trbench: warning: environment variable %s sets no key%s\n", name, hint)
	}
}

func texts(c *experiment.Config) map[string]string {
	m := map[string]string{}
	for _, k := range experiment.Keys() {
		m[k.Name] = k.Get(c)
	}
	return m
}

// isSet says that the user has set a key by file, environment or flag.
func (c *configFlags) isSet(key string) bool { return c.explicit[key] != "" }

// groupedUsage prints a command's flags in the groups of the keys.
func groupedUsage(cmd *cobra.Command) string {
	groups := map[string]*pflag.FlagSet{}
	var order []string
	add := func(group string, f *pflag.Flag) {
		if groups[group] == nil {
			groups[group] = pflag.NewFlagSet(group, pflag.ContinueOnError)
			groups[group].SortFlags = false
			order = append(order, group)
		}
		groups[group].AddFlag(f)
	}
	byFlag := map[string]string{}
	for _, k := range experiment.Keys() {
		byFlag[flagName(k.Name)] = k.Group
	}
	var rest []*pflag.Flag
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if g := byFlag[f.Name]; g != "" {
			add(g, f)
		} else if !f.Hidden {
			rest = append(rest, f)
		}
	})
	for _, f := range rest {
		add("Run", f)
	}
	var b strings.Builder
	for _, g := range order {
		fmt.Fprintf(&b, "%s:\n%s\n", g, groups[g].FlagUsagesWrapped(80))
	}
	return strings.TrimRight(b.String(), "\n")
}
