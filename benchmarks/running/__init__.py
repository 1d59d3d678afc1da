"""What every evaluation needs: data files read row by row, records that outlive a kill, intervals."""
