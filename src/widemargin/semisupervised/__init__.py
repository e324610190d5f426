"""Demands on precision and recall, few labels and many rows without one."""
