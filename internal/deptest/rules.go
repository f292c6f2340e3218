package deptest

// Names of packages are paths below the module's root. One that ends in /... stands for the package and all below it;
// of the rows that fit a package, the longest holds.

// row says what a package may import of this module, names with blanks between, and why no more.
type row struct{ pkg, may, why string }

func rows() []row {
	return []row{
		// Leaves: words that everything else shares.
		{"engine/clock", "",
			"points in time mean the same to all, so they know nobody"},
		{"engine/step", "engine/clock",
			"the vocabulary of a step; a word that knew its users could not be shared by them"},
		{"internal/...", "",
			"helpers of all packages: one that imported any of them would close a cycle"},

		// The scheduler: one deterministic machine for every clock.
		{"engine/kv", "engine/clock engine/step",
			"accounts for blocks and holds no tensor, so that the simulator runs it as it is"},
		{"engine/route/...", "engine/route/... engine/step engine/clock models/signal internal/suggest",
			"a program sees its results and the draws it may ask for, never the scheduler that runs it"},
		{"engine/route/starlark", "engine/route engine/dispatch engine/step engine/clock models/signal internal/suggest",
			"a program in a file: it is tried on dispatch, which needs no machine to run on"},
		{"engine/core", "engine/route engine/kv engine/step engine/clock models",
			"decides on what it is passed; a driver that it knew would be the clock that it must not have"},
		{"engine/dispatch", "engine/route engine/kv engine/step engine/clock models models/signal",
			"the baseline's brain, under the same terms as core: neither knows the other"},

		// The engine: the machine on the wall clock.
		{"engine/backend/...", "engine/backend/... engine/step engine/clock models/...",
			"computes the batch that it is given; scheduling is core's"},
		{"engine", "engine/core engine/dispatch engine/route/... engine/kv engine/backend/... engine/step engine/clock " +
			"models/... workloads/... results/... internal/suggest",
			"loops around core; what it shares with sim is core, not code of either"},
		{"engine/rpc/...", "engine/rpc/... engine engine/core engine/dispatch engine/route/... engine/kv " +
			"engine/backend/... engine/step engine/clock models/... workloads/... results/... internal/suggest",
			"the baseline over HTTP: it drives dispatch as the simulator does, and never the simulator"},

		// The simulator: the machine on a virtual clock.
		{"sim", "sim/... engine/core engine/dispatch engine/route/... engine/kv engine/step engine/clock " +
			"models/... workloads/... results/... internal/suggest",
			"runs the scheduler that ships, and none of what runs it on the wall clock"},
		{"sim/serve", "engine/kv engine/clock models/latency/kernels",
			"one model's server has a scheduler of its own (ADR 0008); what routes tokens is nothing to it"},
		{"sim/des", "engine/clock",
			"an event queue that knows of time alone"},
		{"sim/markov", "models/... engine/step engine/clock internal/suggest",
			"the exact chain is an oracle for the scheduler: sharing code with it would share its mistakes"},

		// What models are, and how long their steps take.
		{"models", "internal/suggest",
			"cards and deployments are facts; how long a step takes is models/latency's"},
		{"models/latency", "models engine/step engine/clock internal/suggest",
			"a time for a shape; who schedules it is not its business"},
		{"models/latency/kernels", "engine/step",
			"times of kernels for the shape of a step; it knows neither cards nor profiles"},
		{"models/calibrate", "models/... results results/metrics engine/step engine/clock internal/suggest",
			"fits latency and signals to the records of runs: the one reader of results among the models"},
		{"models/...", "models/... engine/step engine/clock internal/suggest",
			"loaders and signals describe models; they run nothing"},

		// What comes in and what goes out.
		{"workloads/...", "workloads/... engine/clock internal/suggest",
			"requests are the same whatever serves them"},
		{"results/...", "results/... engine/clock internal/suggest",
			"a record must be readable without what made it, so that runs of every engine compare"},

		// The command line ties all together.
		{"cmd/...", "cmd/... engine/... sim/... models/... workloads/... results/... internal/...",
			"commands open inputs, call one library function and write; nothing imports them"},
	}
}

// never says what a package must not reach by any chain of imports.
type never struct{ from, to, why string }

func nevers() []never {
	return []never{
		{"sim/...", "engine engine/backend/... engine/rpc/...",
			"what is simulated is the scheduler alone: a virtual clock under goroutines and sockets would be neither"},
		{"results/...", "engine engine/core engine/dispatch sim/...",
			"reading, comparing and plotting a run needs no scheduler"},
		{"engine/core engine/dispatch", "engine engine/backend/... engine/rpc/... sim/...",
			"the scheduler is driven; it doesn't know by whom"},
		{"engine/... sim/... models/... workloads/... results/...", "cmd/...",
			"a library works without the command line"},
	}
}

// ban says what the code of packages must not contain: imports of the standard library (names as above), what it calls
// of package time, or go statements.
type ban struct {
	pkgs    string
	imports string
	time    string
	goes    bool
	why     string
}

// The deterministic packages: those that decide, and those that say how long and what.
const (
	scheduler = "engine/clock engine/step engine/kv engine/route engine/core engine/dispatch"
	simulator = "sim/... models models/latency models/signal"
)

func bans() []ban {
	return []ban{
		{
			pkgs: scheduler + " engine/route/... sim/... models/... workloads/... results/...",
			time: "Now Since Until Sleep After AfterFunc Tick NewTimer NewTicker",
			why:  "time is an argument: the same config and seed give the same bytes",
		},
		{
			pkgs: scheduler + " " + simulator + " engine/route/... workloads/...",
			goes: true,
			why:  "the order of goroutines is nobody's to choose: drivers start them, state machines don't",
		},
		{
			pkgs:    scheduler + " sim sim/des models models/signal",
			imports: "os/... net/... syscall",
			why:     "no I/O in a decision: what it depends on is passed in",
		},
		{
			pkgs:    scheduler + " " + simulator + " engine/route/... workloads/...",
			imports: "math/rand/... crypto/rand",
			why:     "draws are counter-based, by seed, request, position, model and purpose, so that two systems see the same",
		},
	}
}
