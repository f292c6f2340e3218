// Package cpu runs models of the Llama, Qwen 2 and Qwen 3 families on the CPU: the engine's backend for machines
// without a GPU. A Model takes the scheduler's batches, with prefills, chunks, resumed suffixes, decodes and drafts to
// verify in any mixture, keeps a paged KV cache by request handle, and reports sampled tokens and what routers read of
// them. It decides nothing: which tokens are fed and which KV is stale is the scheduler's word, the tokens themselves
// the engine's.
//
// Results don't depend on company. A token's logits are the same bits whatever else is in the batch, however its
// prompt was cut into chunks, whatever the size of a KV block and the number of workers; so two policies that run the
// same requests write the same texts. It follows from the kernels' fixed order of additions (package kernel) and from
// attention that adds up by position.
//
// Read model.go (New and Forward), plan.go (what a batch asks for), cache.go (paged KV), layer.go and attention.go
// (the forward pass), then sample.go, scores.go and verify.go (what comes out). pool.go shares the work among cores,
// machine.go says what this machine can do.
package cpu
