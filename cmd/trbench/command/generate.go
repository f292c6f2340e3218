package command

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/trbench/trbench/cmd/trbench/experiment"
	"github.com/trbench/trbench/engine/backend/cpu"
	"github.com/trbench/trbench/engine/route"
)

func generateCommand() *cobra.Command {
	var small, large, color string
	g := experiment.Generation{}
	cmd := &cobra.Command{
		Use:   "generate PROMPT",
		Short: "Write an answer with two real models, token by token",
		Long: `Run one prompt on the engine, with two models on this machine's CPU that share the answer token by
token, and stream it. On a terminal what the large model wrote is coloured. Without --small and
--large it is the embedded demo pair: fluent in form, not in arithmetic.`,
		Example: `  trbench generate 'Question: Tom has 3 apples and buys 4 more. How many has he now?
Answer:'
  trbench generate --small qwen2.5-0.5b/ --large qwen2.5-1.5b/ --chat 'What is a monad?'`,
		Args: exactly("PROMPT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if (small == "") != (large == "") {
				return badUsage("--small and --large: name both folders, or neither")
			}
			if s := g.Sampling; !(s.Temperature >= 0) || !(s.TopP >= 0 && s.TopP <= 1) || s.TopK < 0 {
				return badUsage("--temperature %g, --top-p %g, --top-k %d: want none below 0, and a share of at most 1", s.Temperature, s.TopP, s.TopK)
			}
			if g.Max < 1 {
				return badUsage("--max-tokens %d: want at least 1", g.Max)
			}
			out := cmd.OutOrStdout()
			paint := color == "always"
			switch color {
			case "auto":
				f, ok := out.(*os.File)
				paint = ok && term.IsTerminal(int(f.Fd()))
			case "always", "never":
			default:
				return badUsage("--color %q: want auto, always or never", color)
			}
			l, err := experiment.OpenLocal(small, large)
			if err != nil {
				return err
			}
			g.Prompt = args[0]
			done, err := l.Generate(cmd.Context(), g, func(w experiment.Written) {
				if paint && w.Model > 0 {
					fmt.Fprintf(out, "\x1b[1;36m%s\x1b[0m", w.Text)
					return
				}
				fmt.Fprint(out, w.Text)
			})
			if done != nil && done.Tokens > 0 {
				fmt.Fprintln(out)
				pace := float64(done.Tokens) / done.Total.Seconds()
				fmt.Fprintf(cmd.ErrOrStderr(), "%d prompt and %d output tokens, %.0f %% of them by %s, %d hops; first token after %s, %.0f tok/s (measured)\n",
					done.Prompt, done.Tokens, 100*float64(done.Large)/float64(done.Tokens), l.Names[len(l.Names)-1], done.Hops, done.TTFT.Round(10*time.Microsecond), pace)
			}
			return err
		},
	}
	fs := cmd.Flags()
	fs.SortFlags = false
	fs.StringVar(&small, "small", "", "folder of the small model (config.json, *.safetensors)")
	fs.StringVar(&large, "large", "", "folder of the large model, with tokenizer.json")
	fs.BoolVar(&g.Chat, "chat", false, "put the prompt into the tokenizer's chat template")
	fs.IntVar(&g.Max, "max-tokens", 160, "tokens to write at most")
	fs.StringVar(&g.Algorithm, "algorithm", "entropy", "routing algorithm: one that reads the models' own scores")
	fs.Float64Var(&g.Threshold, "threshold", 0, "of the algorithm's rule; 0: the published one")
	fs.Float64Var(&g.Sampling.Temperature, "temperature", 0, "of sampling; 0: greedy")
	fs.IntVar(&g.Sampling.TopK, "top-k", 0, "likeliest tokens that are sampled from; 0: all")
	fs.Float64Var(&g.Sampling.TopP, "top-p", 0, "share of probability that tokens are sampled from; 0: all")
	fs.Uint64Var(&g.Sampling.Seed, "seed", 1, "of sampling")
	fs.StringVar(&color, "color", "auto", "colour tokens by model: auto, always, never")
	complete(cmd, "algorithm", route.Names()...)
	complete(cmd, "color", "auto", "always", "never")
	return cmd
}

func doctorCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at this machine: cores, SIMD, memory bandwidth, GPU, noise",
		Args:  none,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkFormat(format); err != nil {
				return err
			}
			f := cpu.Features()
			doc := struct {
				Version   string   `json:"version"`
				Cores     int      `json:"cores"`
				SIMD      string   `json:"simd"`
				Levels    []string `json:"simd_levels"`
				Bandwidth float64  `json:"read_bandwidth_bytes_per_s"`
				GPU       string   `json:"gpu"`
				Noise     float64  `json:"noise"`
			}{version(), f.Cores, f.SIMD, f.Levels, cpu.Bandwidth(), findGPU(), noise()}
			if format == "json" {
				return writeJSON(cmd.OutOrStdout(), doc)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "trbench    %s\n", doc.Version)
			fmt.Fprintf(out, "cores      %d\n", doc.Cores)
			fmt.Fprintf(out, "SIMD       %s (there are %v)\n", doc.SIMD, doc.Levels)
			fmt.Fprintf(out, "memory     %.1f GB/s read by all cores (measured)\n", doc.Bandwidth/1e9)
			fmt.Fprintf(out, "GPU        %s\n", doc.GPU)
			fmt.Fprintf(out, "noise      the slowest of %d equal pieces of work took %+.0f %% more than the median (measured)\n", noisePieces, 100*doc.Noise)
			if doc.Noise > .2 {
				fmt.Fprintln(out, "           other work runs on this machine: quote ratios, not seconds")
			}
			return nil
		},
	}
	outputFormat(cmd, &format)
	return cmd
}

// findGPU says whether a CUDA device is there; the engine does not use one yet.
func findGPU() string {
	if _, err := os.Stat("/dev/nvidia0"); err == nil {
		return "an NVIDIA device is there; the engine does not use it"
	}
	return "none"
}

// noisePieces is how often noise repeats a piece of work.
const noisePieces = 40

// noise is how much longer the slowest of equal pieces of work takes than the median one, as a fraction: what else runs
// on the machine.
func noise() float64 {
	times := make([]float64, noisePieces)
	sink := uint64(0)
	for i := range times {
		began := time.Now()
		for k := range uint64(3_000_000) {
			sink = sink*6364136223846793005 + k
		}
		times[i] = time.Since(began).Seconds()
	}
	if sink == 0 { // never: keeps the work from being left out
		return 0
	}
	return slowest(times)
}

// slowest is the largest time over the median, less 1.
func slowest(times []float64) float64 {
	slices.Sort(times)
	return times[len(times)-1]/times[len(times)/2] - 1
}
