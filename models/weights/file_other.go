//go:build !unix || aix || solaris

package weights

import (
	"errors"
	"os"
)

// mapFile always fails: files are read instead.
func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }
