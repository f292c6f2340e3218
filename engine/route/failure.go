package route

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// Failure is how a program failed its request.
type Failure struct {
	Program string
	Place   string // "cascade.go:12", "mine.star:7:9"; empty where nobody knows
	Err     error
}

func (f *Failure) Error() string {
	if f.Place == "" {
		return fmt.Sprintf("program %s: %v", f.Program, f.Err)
	}
	return fmt.Sprintf("program %s: %s: %v", f.Program, f.Place, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// caller is the place in the program that called a method of its Request.
func caller() string {
	return place(func(function string) bool { return !strings.Contains(function, "/route.(*Request).") && !lib(function) })
}

// panicked is the place that panicked; to be called while the panic unwinds.
func panicked() string {
	seen := false
	return place(func(function string) bool {
		if strings.HasPrefix(function, "runtime.") {
			seen = seen || function == "runtime.gopanic"
			return false
		}
		return seen
	})
}

// lib says that a function belongs to this package's machinery or to the runtime, not to a program.
func lib(function string) bool {
	return strings.HasPrefix(function, "runtime.") || strings.HasSuffix(function, "/route.caller") ||
		strings.HasSuffix(function, "/route.place")
}

// place is file and line of the innermost function that matches.
func place(matches func(function string) bool) string {
	var pc [64]uintptr
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc[:])])
	for {
		f, more := frames.Next()
		if f.Function != "" && matches(f.Function) {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}
