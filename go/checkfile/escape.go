package checkfile

import "strings"

var escapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

// escape returns the name as in a line, and whether the line needs a backslash in front.
func escape(name string) (string, bool) {
	if !strings.ContainsAny(name, "\\\n\r") {
		return name, false
	}
	return escapes.Replace(name), true
}

// unescape reverses escape. It returns false for an escape that escape does not write.
func unescape(name string) (string, bool) {
	if strings.IndexByte(name, '\\') < 0 {
		return name, true
	}
	plain := make([]byte, 0, len(name))
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c == '\\' {
			if i++; i == len(name) {
				return "", false
			}
			switch name[i] {
			case '\\':
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			default:
				return "", false
			}
		}
		plain = append(plain, c)
	}
	return string(plain), true
}
