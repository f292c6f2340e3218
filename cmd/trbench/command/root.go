// Package command is the command line: one verb a file. Commands are thin: flags become a config, one library call does
// the work, and its result is written. What they share is in root.go (exit codes, errors) and flags.go (keys as flags).
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/internal/suggest"
)

// Main runs the command line and returns the exit code. SIGINT and SIGTERM end the work early: what is done is written.
// A second one ends the process.
func Main(args []string, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	root := Root()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return experiment.ExitOK
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = &experiment.Error{Code: experiment.ExitInterrupted, Err: errors.New("interrupted")}
	}
	fmt.Fprintf(stderr, "trbench: %v\n", err)
	return experiment.Code(err)
}

// Root is the whole command tree.
func Root() *cobra.Command {
	root := &cobra.Command{
		Use:   "trbench",
		Short: "What token-level routing between language models costs and gains",
		Long: `trbench answers one question for people who serve language models: what does token-level
routing between models cost and gain, on my models, my traffic and my hardware, against
orchestrating the same models over RPC?

It simulates (seconds, no GPU) with the scheduler that the engine runs; computes
the best batching thresholds from a Markov chain; and runs real models on the CPU.`,
		Example: `  trbench run                 the headline: three workloads, four systems
  trbench run --workload gsm8k --concurrency 8 --algorithm r2r,citer
  trbench run --latency paper --switch-rate 0.35 --threshold 3 --concurrency 4
  trbench data inspect FILE   what is in a dataset file`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		DisableAutoGenTag: true,
		Args:              unknownVerb,
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	root.AddCommand(
		runCommand(), sweepCommand(), markovCommand(), calibrateCommand(), fidelityCommand(),
		programsCommand(), programCommand(), dataCommand(), modelsCommand(), resultsCommand(),
		generateCommand(), doctorCommand(), versionCommand(),
	)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	judgeArgs(root)
	wrapLong(root)
	return root
}

// judgeArgs makes the commands that cobra adds, help and completion, refuse what they don't know: exit 2.
func judgeArgs(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				about, rest, err := root.Find(args)
				if err != nil {
					return badUsage("%w", err)
				}
				if !about.HasSubCommands() {
					return nil
				}
				return unknownVerb(about, rest)
			}
		case "completion":
			c.Args = unknownVerb
			c.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
			for _, shell := range c.Commands() {
				shell.Args = none
			}
		}
	}
}

// badUsage marks an error as the user's: exit 2.
func badUsage(format string, args ...any) error {
	return &experiment.Error{Code: experiment.ExitUsage, Err: fmt.Errorf(format, args...)}
}

// unknownVerb is the Args of a command that only holds others.
func unknownVerb(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var verbs []string
	for _, c := range cmd.Commands() {
		if !c.Hidden {
			verbs = append(verbs, c.Name())
		}
	}
	if near, ok := suggest.Nearest(args[0], verbs); ok {
		return badUsage("unknown command %q: did you mean %s %s?", args[0], cmd.CommandPath(), near)
	}
	return badUsage("unknown command %q (%s --help lists the commands)", args[0], cmd.CommandPath())
}

// exactly is cobra.ExactArgs with an error that says what is wanted.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != len(names) {
			return badUsage("%s: want %s, got %d arguments", cmd.CommandPath(), strings.Join(names, " and "), len(args))
		}
		return nil
	}
}

// none is cobra.NoArgs with exit code 2.
func none(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return badUsage("%s takes no argument, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// flagError names the flag that could not be read, and the nearest name of one that is unknown.
func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if errors.As(err, &unknown) {
		name := unknown.GetSpecifiedName()
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near, ok := suggest.Nearest(name, names); ok {
			return badUsage("unknown flag --%s: did you mean --%s?", name, near)
		}
		return badUsage("unknown flag --%s (%s --help lists the flags)", name, cmd.CommandPath())
	}
	var invalid *pflag.InvalidValueError
	if errors.As(err, &invalid) {
		return badUsage("--%s: %w", invalid.GetFlag().Name, invalid.Unwrap())
	}
	return badUsage("%w", err)
}

// outputFormat is the --output flag of commands that print a list or an object.
func outputFormat(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "output", "table", "on stdout: table or json")
	complete(cmd, "output", "table", "json")
}

func checkFormat(format string) error {
	if format != "table" && format != "json" {
		return badUsage("--output %q: want table or json", format)
	}
	return nil
}

// complete offers fixed values for a flag on the shell's completion.
func complete(cmd *cobra.Command, flag string, values ...string) {
	err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values, cobra.ShellCompDirectiveNoFileComp
	})
	if err != nil {
		panic(err) // a flag that the command does not have
	}
}

// wrapLong breaks the paragraphs of a command's description, and of those below it, for a terminal of 80 columns.
func wrapLong(c *cobra.Command) {
	paragraphs := strings.Split(c.Long, "\n\n")
	for i, p := range paragraphs {
		if !strings.Contains(p, "\n ") { // a list or a block keeps its lines
			paragraphs[i] = strings.ReplaceAll(wrapText(p, 79), "\n  ", "\n")
		}
	}
	c.Long = strings.Join(paragraphs, "\n\n")
	for _, sub := range c.Commands() {
		wrapLong(sub)
	}
}
