"""What every evaluation needs beside the data: how sure a share is."""
