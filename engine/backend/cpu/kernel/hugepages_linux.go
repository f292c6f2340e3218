package kernel

import (
	"syscall"
	"unsafe"
)

const (
	hugePage = 2 << 20 // bytes, on amd64 and on arm64 with 4 KiB pages
	madvHuge = 14      // MADV_HUGEPAGE of madvise(2)
)

// hugePages asks for large pages under what lies whole within b. It is advice: where the system refuses it, a product
// is slower and nothing else.
func hugePages(b []byte) {
	skip := int(-uintptr(unsafe.Pointer(unsafe.SliceData(b))) % hugePage)
	if n := (len(b) - skip) / hugePage * hugePage; n > 0 {
		_ = syscall.Madvise(b[skip:skip+n], madvHuge)
	}
}
