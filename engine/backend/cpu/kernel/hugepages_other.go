//go:build !linux

package kernel

func hugePages([]byte) {}
