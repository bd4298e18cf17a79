"""Values ⇄ codes. Content never raises here: whatever a cell holds, it gets a code by a public rule."""
