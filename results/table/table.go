// Package table writes a summary for people and for spreadsheets: the table of the terminal, Markdown, and CSV.
//
// Read terminal.go first, then markdown.go and csv.go. number.go says how figures are rounded; CSV rounds none.
package table
