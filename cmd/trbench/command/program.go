package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/trbench/trbench/engine/dispatch"
	"github.com/trbench/trbench/engine/route"
	"github.com/trbench/trbench/engine/route/starlark"
	"github.com/trbench/trbench/engine/step"
	"github.com/trbench/trbench/models/signal"
)

func programCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "program",
		Short: "Write, check and look into a routing program of your own",
		Long: `A routing program is straight-line code for one request, in a Starlark file: decode here, look at the
confidence, maybe decode there. It runs unchanged in the simulator, in the engine and over the RPC
baseline: trbench run --program FILE.star.`,
		Example: `  trbench program new mine
  trbench program check mine.star
  trbench program compile mine.star --rate 0.2
  trbench run --program mine.star --workload gsm8k --concurrency 4,16`,
		Args: unknownVerb,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(programNew(), programCheck(), programCompile())
	return cmd
}

func programNew() *cobra.Command {
	var from string
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Write NAME.star here, to start from; never over a file that is there",
		Args:  exactly("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			path := strings.TrimSuffix(args[0], ".star") + ".star"
			var err error
			if from == "" {
				err = starlark.Create(path)
			} else {
				err = copyExample(from, path)
			}
			if err != nil {
				return badUsage("%w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: edit it, then: trbench program check %s\n", path, path)
			return nil
		},
	}
	cmd.Flags().StringVar(&from, "from", "", "built-in algorithm to copy: "+strings.Join(starlark.Examples(), ", "))
	complete(cmd, "from", starlark.Examples()...)
	return cmd
}

// copyExample writes the file of a built-in algorithm.
func copyExample(name, path string) error {
	src, ok := starlark.Example(name)
	if !ok {
		return fmt.Errorf("no file of algorithm %q (there are %s)", name, strings.Join(starlark.Examples(), ", "))
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(src)
	return errors.Join(err, f.Close())
}

func programCheck() *cobra.Command {
	var models int
	cmd := &cobra.Command{
		Use:   "check FILE",
		Short: "Check a program: its syntax, its names, and runs of it on random signals",
		Args:  exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := starlark.Load(args[0], starlark.Options{Models: models})
			if err == nil {
				err = f.Check()
			}
			if err != nil {
				return badUsage("%w", err)
			}
			how := "a coroutine a request"
			if t, err := f.Lower(); err == nil {
				how = fmt.Sprintf("a table of %d states, as fast as a built-in algorithm", t.States())
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: ok; runs as %s\n", args[0], how)
			return nil
		},
	}
	cmd.Flags().IntVar(&models, "models", 2, "models of the deployment")
	return cmd
}

func programCompile() *cobra.Command {
	var models int
	var rate, acceptance float64
	var seed uint64
	var format string
	cmd := &cobra.Command{
		Use:   "compile FILE|ALGORITHM",
		Short: "Show what a program becomes: where it waits, route / send / receive, and P and C",
		Long: `Run a program on random signals and show what the request's view became for the models: the places
where it waits for a step, what each model's route, send and receive do, and the matrices P and C of
its hops. With --output json, trbench markov --chain reads them.`,
		Example: `  trbench program compile mine.star --rate 0.2
  trbench program compile r-stitch --models 3 --output json
  trbench program compile mine.star --rate 0.2 --output json   redirect it to a file: trbench markov --chain FILE`,
		Args: exactly("FILE|ALGORITHM"),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return route.Names(), cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if !(rate >= 0 && rate <= 1) || !(acceptance >= 0 && acceptance <= 1) {
				return badUsage("--rate %g, --acceptance %g: want probabilities from 0 to 1", rate, acceptance)
			}
			if err := checkFormat(format); err != nil {
				return err
			}
			l, err := compileProgram(args[0], models, rate, acceptance, seed)
			if err != nil {
				return badUsage("%w", err)
			}
			if format == "json" {
				return l.JSON(cmd.OutOrStdout())
			}
			return l.Write(cmd.OutOrStdout())
		},
	}
	cmd.Flags().IntVar(&models, "models", 2, "models of the deployment")
	cmd.Flags().Float64Var(&rate, "rate", .1, "probability that the program's rule fires")
	cmd.Flags().Float64Var(&acceptance, "acceptance", signal.DefaultAcceptance, "probability that a draft is kept")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "of the signals")
	outputFormat(cmd, &format)
	return cmd
}

// compileProgram lists a file, or a built-in algorithm where no such file exists.
func compileProgram(name string, models int, rate, acceptance float64, seed uint64) (l *starlark.Listing, err error) {
	defer func() {
		if l != nil {
			l.Rates = slices.Repeat([]float64{rate}, models)
		}
	}()
	run := dispatch.Run{Requests: 200, Prompt: 50, Output: 200}
	source := func(rule func(step.ModelID) signal.Rule) (signal.Source, error) {
		c := signal.Config{Seed: seed, Acceptance: signal.Acceptance{Alpha: []float64{acceptance}}}
		for m := range models {
			c.Rules = append(c.Rules, rule(step.ModelID(m)))
			c.Rates = append(c.Rates, rate)
		}
		return signal.New(c)
	}
	if _, err := os.Stat(name); err == nil {
		f, err := starlark.Load(name, starlark.Options{Models: models, Seed: seed})
		if err != nil {
			return nil, err
		}
		s, err := source(func(m step.ModelID) signal.Rule { return f.Rules()[m] })
		if err != nil {
			return nil, err
		}
		return f.Compile(s, run)
	}
	o := route.Options{Models: models, Seed: seed}
	fastest, err := route.New(name, o)
	if err != nil {
		return nil, err
	}
	o.Program = true
	r, err := route.New(name, o)
	if err != nil {
		return nil, err
	}
	_, coroutines := fastest.(route.Follower)
	s, err := source(func(m step.ModelID) signal.Rule {
		if ruled, ok := r.(route.Ruled); ok {
			return ruled.Rule(m)
		}
		return signal.Rule{}
	})
	if err != nil {
		return nil, err
	}
	return starlark.Compile(strings.ToLower(name), r, !coroutines, models, s, run)
}
