package tokenizer

import (
	"errors"
	"fmt"
	"strings"
)

// Role says who speaks in a message.
type Role string

// The roles.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one turn of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
}

// Template is how a family of models was trained to see a conversation. It is recognised by the text of the model's
// chat template, and written by code: nothing interprets Jinja here. Tools are not supported.
type Template string

// The templates.
const (
	NoTemplate      Template = "none"     // contents only, one a line: for a model not trained on conversations
	Llama3          Template = "llama3"   // Llama 3
	Llama31         Template = "llama3.1" // Llama 3.1 to 3.3: a system message that states dates
	ChatML          Template = "chatml"   // Qwen 2 and 2.5; the template's own system message where none is given
	Qwen3           Template = "qwen3"    // ChatML; answers to earlier questions lose the thoughts before them
	UnknownTemplate Template = "unknown"  // the model has one, of another family: text can be encoded, chats can't
)

// The errors of a conversation.
var (
	ErrRole     = errors.New("unknown role")
	ErrTemplate = errors.New("chat template is of no supported family (Llama 3, Qwen)")
)

// recognise is the template whose Jinja text this is, and the system message that it gives by default.
func recognise(jinja string) (t Template, system string) {
	has := func(part string) bool { return strings.Contains(jinja, part) }
	switch {
	case jinja == "":
		return NoTemplate, ""
	case has("<|start_header_id|>") && has("Cutting Knowledge Date"):
		return Llama31, ""
	case has("<|start_header_id|>"):
		return Llama3, ""
	case has("<|im_start|>") && has("</think>"):
		if has(`<|im_start|>assistant\n<think>`) {
			return UnknownTemplate, "" // begins the thought itself
		}
		return Qwen3, ""
	case has("<|im_start|>"):
		return ChatML, defaultSystem(jinja)
	}
	return UnknownTemplate, ""
}

// defaultSystem is the text of the system message that a ChatML template spells out in one literal; "" if it has none.
func defaultSystem(jinja string) string {
	for {
		_, rest, ok := strings.Cut(jinja, "<|im_start|>system")
		if !ok {
			return ""
		}
		text, _, ok := strings.Cut(rest, "<|im_end|>")
		if ok && text != "" && !strings.ContainsAny(text, `'"`) {
			text = strings.NewReplacer(`\\`, `\`, `\n`, "\n").Replace(text)
			return strings.TrimPrefix(text, "\n")
		}
		jinja = rest
	}
}

// markers are the added tokens that a template writes.
func (t Template) markers() []string {
	switch t {
	case Llama3, Llama31:
		return []string{"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}
	case ChatML, Qwen3:
		return []string{"<|im_start|>", "<|im_end|>"}
	}
	return nil
}

// turnEnd is the added token that ends a turn; "" where there is none.
func (t Template) turnEnd() string {
	if m := t.markers(); len(m) > 0 {
		return m[len(m)-1]
	}
	return ""
}

// Template is the template of the tokenizer's model.
func (t *Tokenizer) Template() Template { return t.template }

// Chat returns the tokens of a conversation, up to where the assistant is to answer. Messages are text only: a special
// token that one spells is encoded as plain characters, so that no content can end its turn or begin another's. It
// fails with ErrRole or ErrTemplate.
func (t *Tokenizer) Chat(messages []Message) ([]int32, error) {
	parts, err := t.lay(messages)
	if err != nil {
		return nil, err
	}
	var ids []int32
	for _, p := range parts {
		if p.marker {
			id, ok := t.ID(p.text)
			if !ok {
				return nil, fmt.Errorf("no added token %s", p.text) // Open has checked that there is one
			}
			ids = append(ids, id)
			continue
		}
		t.each(&t.ordinary, p.text,
			func(id int32) { ids = append(ids, id) },
			func(word string) { ids = t.appendWord(ids, word) })
	}
	return ids, nil
}

// Render returns a conversation as text, special tokens spelt out. Encode(text, false) of it is Chat, unless a message
// spells a special token itself. It fails with ErrRole or ErrTemplate.
func (t *Tokenizer) Render(messages []Message) (string, error) {
	parts, err := t.lay(messages)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(p.text)
	}
	return text.String(), nil
}

// part is a piece of a laid-out conversation: a marker is one added token, all else is text.
type part struct {
	text   string
	marker bool
}

// layout collects parts. Text that follows text joins it: words must not be cut where the template's text ends.
type layout []part

func (l *layout) mark(token string) { *l = append(*l, part{token, true}) }

func (l *layout) write(text string) {
	parts := *l
	if n := len(parts); n > 0 && !parts[n-1].marker {
		parts[n-1].text += text
		return
	}
	*l = append(parts, part{text, false})
}

// lay lays a conversation out by the model's template.
func (t *Tokenizer) lay(messages []Message) ([]part, error) {
	if t.template == UnknownTemplate {
		return nil, ErrTemplate
	}
	for i, m := range messages {
		if m.Role != System && m.Role != User && m.Role != Assistant {
			return nil, fmt.Errorf("message %d: %w %q, wanted %s, %s or %s", i, ErrRole, m.Role, System, User, Assistant)
		}
	}
	var l layout
	switch t.template {
	case Llama3, Llama31:
		l.mark("<|begin_of_text|>")
		t.layLlama(&l, messages)
	case ChatML, Qwen3:
		t.layChatML(&l, messages)
	default:
		for i, m := range messages {
			if i > 0 {
				l.write("\n")
			}
			l.write(m.Content)
		}
	}
	return l, nil
}

// llama31Dates opens the system message of Llama 3.1: today is a constant of its template.
const llama31Dates = "Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n\n"

func (t *Tokenizer) layLlama(l *layout, messages []Message) {
	header := func(role Role) {
		l.mark("<|start_header_id|>")
		l.write(string(role))
		l.mark("<|end_header_id|>")
		l.write("\n\n")
	}
	turn := func(role Role, content string) {
		header(role)
		l.write(content)
		l.mark("<|eot_id|>")
	}
	if t.template == Llama31 {
		system := ""
		if len(messages) > 0 && messages[0].Role == System {
			system = strings.TrimSpace(messages[0].Content)
			messages = messages[1:]
		}
		turn(System, llama31Dates+system)
	}
	for _, m := range messages {
		turn(m.Role, strings.TrimSpace(m.Content))
	}
	header(Assistant)
}

func (t *Tokenizer) layChatML(l *layout, messages []Message) {
	header := func(role Role) {
		l.mark("<|im_start|>")
		l.write(string(role) + "\n")
	}
	turn := func(role Role, content string) {
		header(role)
		l.write(content)
		l.mark("<|im_end|>")
		l.write("\n")
	}
	if t.defaultSystem != "" && (len(messages) == 0 || messages[0].Role != System) {
		turn(System, t.defaultSystem)
	}
	question := len(messages) - 1 // the last one; with none, all answers count as earlier
	for i, m := range messages {
		if m.Role == User {
			question = i
		}
	}
	for i, m := range messages {
		content := m.Content
		if t.template == Qwen3 && m.Role == Assistant {
			content = qwen3Answer(content, i > question, i == len(messages)-1)
		}
		turn(m.Role, content)
	}
	header(Assistant)
}

// qwen3Answer is an answer as Qwen 3 sees it: without its thoughts, or, behind the last question, with them; the last
// message shows them even if there are none.
func qwen3Answer(content string, current, last bool) string {
	const begin, end = "<think>", "</think>"
	thought := ""
	if i := strings.LastIndex(content, end); i >= 0 {
		thought, _, _ = strings.Cut(content, end)
		thought = strings.TrimRight(thought, "\n")
		if i := strings.LastIndex(thought, begin); i >= 0 {
			thought = thought[i+len(begin):]
		}
		thought = strings.Trim(thought, "\n")
		content = strings.TrimLeft(content[i+len(end):], "\n")
	}
	if current && (last || thought != "") {
		return begin + "\n" + thought + "\n" + end + "\n\n" + strings.TrimLeft(content, "\n")
	}
	return content
}
