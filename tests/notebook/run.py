"""Runs cells, a JSON array of texts on standard input, in a real Jupyter kernel; prints the outputs of each as JSON."""
import json
import sys

import nbformat
from nbclient import NotebookClient

cells = [nbformat.v4.new_code_cell(cell) for cell in json.load(sys.stdin)]
notebook = nbformat.v4.new_notebook(cells=cells)
NotebookClient(notebook, timeout=300, allow_errors=True).execute()
print(json.dumps([cell.outputs for cell in notebook.cells]))
