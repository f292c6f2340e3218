//go:build !linux && !darwin

package results

// cpuModel is not known here.
func cpuModel() string { return "" }
