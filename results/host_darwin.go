package results

import "syscall"

// cpuModel is the processor's name as the kernel gives it, or "".
func cpuModel() string {
	name, err := syscall.Sysctl("machdep.cpu.brand_string")
	if err != nil {
		return ""
	}
	return name
}
