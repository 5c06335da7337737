package blkhash_test

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var updateAPI = flag.Bool("update-api", false, "write the exported names to api.txt")

// TestAPI compares the exported names of the packages with api.txt, as signatures without the names of parameters.
func TestAPI(t *testing.T) {
	var lines []string
	for _, folder := range []string{".", "blkmap", "checkfile"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.FileExports(file)
			for _, decl := range file.Decls {
				for _, line := range exported(decl) {
					lines = append(lines, path.Join("blkhash", folder)+" "+line)
				}
			}
		}
	}
	slices.Sort(lines)
	now := strings.Join(slices.Compact(lines), "\n") + "\n"
	if *updateAPI {
		if err := os.WriteFile("api.txt", []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := os.ReadFile("api.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range without(string(listed), now) {
		t.Errorf("is gone: %s", line)
	}
	for _, line := range without(now, string(listed)) {
		t.Errorf("is new: %s", line)
	}
	if t.Failed() {
		t.Log("go test -run TestAPI -update-api writes api.txt")
	}
}

// without returns the lines of a text that the other one does not have.
func without(text, other string) []string {
	kept := strings.Split(other, "\n")
	return slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool { return slices.Contains(kept, line) })
}

// exported returns a line for each name that a declaration exports.
func exported(decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		if decl.Recv == nil {
			return []string{"func " + decl.Name.Name + signature(decl.Type)}
		}
		receiver := source(decl.Recv.List[0].Type)
		if !ast.IsExported(strings.TrimPrefix(receiver, "*")) {
			return nil
		}
		return []string{fmt.Sprintf("method (%s) %s%s", receiver, decl.Name.Name, signature(decl.Type))}
	case *ast.GenDecl:
		var lines []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					lines = append(lines, decl.Tok.String()+" "+name.Name)
				}
			case *ast.TypeSpec:
				lines = append(lines, ofType(spec)...)
			}
		}
		return lines
	}
	return nil
}

// ofType returns a line for a type and one for each field or method that it lists.
func ofType(spec *ast.TypeSpec) []string {
	name := "type " + spec.Name.Name
	switch kind := spec.Type.(type) {
	case *ast.StructType:
		return append([]string{name + " struct"}, members(name+" struct, ", kind.Fields)...)
	case *ast.InterfaceType:
		return append([]string{name + " interface"}, members(name+" interface, ", kind.Methods)...)
	}
	if spec.Assign != token.NoPos {
		name += " ="
	}
	return []string{name + " " + source(spec.Type)}
}

func members(prefix string, fields *ast.FieldList) []string {
	var lines []string
	for _, field := range fields.List {
		kind := " " + source(field.Type)
		if function, ok := field.Type.(*ast.FuncType); ok {
			kind = signature(function)
		}
		for _, name := range field.Names {
			lines = append(lines, prefix+name.Name+kind)
		}
		if field.Names == nil {
			lines = append(lines, prefix+"embedded"+kind)
		}
	}
	return lines
}

// signature returns the types of parameters and results.
func signature(function *ast.FuncType) string {
	text := "(" + strings.Join(types(function.Params), ", ") + ")"
	switch results := types(function.Results); len(results) {
	case 0:
		return text
	case 1:
		return text + " " + results[0]
	default:
		return text + " (" + strings.Join(results, ", ") + ")"
	}
}

func types(fields *ast.FieldList) []string {
	var all []string
	if fields == nil {
		return all
	}
	for _, field := range fields.List {
		for range max(len(field.Names), 1) {
			all = append(all, source(field.Type))
		}
	}
	return all
}

// source returns a type as in the source, on one line.
func source(node ast.Node) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, token.NewFileSet(), node); err != nil {
		panic(err)
	}
	return strings.Join(strings.Fields(text.String()), " ")
}
