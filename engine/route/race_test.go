//go:build race

package route_test

// raceDetector says that memory is not the program's alone.
const raceDetector = true
