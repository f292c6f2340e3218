package latency

import (
	"errors"
	"fmt"
)

// fieldError is a value that is out of range, by its path within a file: "models[1].table.decode.step_ms[0]".
type fieldError struct {
	path, problem string
}

func (e *fieldError) Error() string { return e.path + " " + e.problem }

func fieldErrorf(path, format string, args ...any) error {
	return &fieldError{path, fmt.Sprintf(format, args...)}
}

func index(path string, i int) string { return fmt.Sprintf("%s[%d]", path, i) }

// within puts a prefix before the path of a field error; nil stays nil.
func within(prefix string, err error) error {
	var f *fieldError
	if errors.As(err, &f) {
		return &fieldError{prefix + "." + f.path, f.problem}
	}
	return err
}
