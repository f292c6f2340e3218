// Package weights opens a model folder in Hugging Face layout, config.json beside one or several safetensors files, and
// hands out its tensors by role. Nothing is converted: a tensor is a view of the mapped file, in the type it is stored
// in, so that opening costs milliseconds and memory is what the operating system pages in.
//
// A file is believed only as far as it can be checked against its own size and against config.json. A truncated,
// oversized or lying file is an error that names file, tensor and numbers; it never panics, and what is allocated is in
// proportion to the bytes that are there, not to what they claim. The package runs no model and knows no tokenizer.
//
// Read model.go (Open, and which tensor plays which role), then config.go and rope.go (what config.json says), then
// header.go (what makes a safetensors file valid), then tensor.go (views).
package weights
