// Package models describes what a run serves and where: the architecture of a model (Card), the models that work
// together (Pair), and the GPUs that hold them (Deployment). From the architecture follow the numbers that a scheduler
// needs, bytes of weights and bytes of KV per token, and from the deployment the KV budget that the models share.
//
// It holds no step times (see models/latency) and reads no files; it imports the standard library only.
//
// Read card.go (architecture and its arithmetic), then pair.go, then deployment.go (what fits where).
package models
