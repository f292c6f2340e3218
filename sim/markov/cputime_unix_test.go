//go:build unix

package markov

import "syscall"

// cpuSeconds is the processor time that the process has used: what a benchmark takes whoever else uses the machine.
func cpuSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
