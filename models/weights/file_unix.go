//go:build unix && !aix && !solaris

package weights

import (
	"os"
	"syscall"
)

// mapFile maps a file's first size bytes, read-only.
func mapFile(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(data []byte) error { return syscall.Munmap(data) }
