package kernel

import "golang.org/x/sys/cpu"

// supported lists the levels above Generic that the machine and its operating system run.
func supported() []Level {
	var all []Level
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		all = append(all, AVX2)
		if cpu.X86.HasAVX512F {
			all = append(all, AVX512)
		}
	}
	return all
}
