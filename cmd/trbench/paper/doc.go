// Package paper sets what the TokenRouter paper and article publish beside what the simulator and the exact chain give
// for the same set-up. Nothing is tuned here but five numbers, each from a cell that then counts as fitted: the switch
// rate of each set-up from its cell at one request, the contention from one cell of the ablation, what a step costs
// without CUDA graphs from the ablation's column of one request, and the hop between nodes from one cell. All else is
// predicted.
//
// Read published.yaml (every published number, and how ours is come by), then setup.go (a set-up becomes a run),
// standin.go (a tensor parallelism that is not tabled), fit.go (the fitted numbers), measure.go (figures that need more
// than one run), orchestration.go (the baseline, and what its calls cost), article.go, report.go (claims, table and
// document), plot.go and tradeoff.go.
//
// Every published number is of the paper, "TokenRouter: Efficient Serving System for Token-Level LLM Routing", or of the
// article, its release note. The two never share a row.
package paper
