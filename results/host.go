package results

import (
	"runtime"
	"runtime/debug"
)

// DescribeHost says what this process was built from and runs on. The GPU is for the backend that uses it to fill in.
func DescribeHost() Host {
	h := Host{
		Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		CPU: Name(cpuModel()), Cores: runtime.NumCPU(),
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				h.Commit = Name(s.Value)
			case "vcs.modified":
				h.Modified = s.Value == "true"
			}
		}
	}
	return h
}
